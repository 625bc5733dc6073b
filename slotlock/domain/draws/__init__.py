"""Fair draws: ranked wishes instead of a rush, and places by lot."""
