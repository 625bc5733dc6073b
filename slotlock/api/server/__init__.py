"""Running the application under uvicorn, with protocols that withstand slow and hostile clients."""
