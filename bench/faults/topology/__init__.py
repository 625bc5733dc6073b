"""The deployment of a campaign: servers, apps, and a proxy in every link between them."""
