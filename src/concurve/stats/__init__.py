"""Arrays → estimates. Imports only numpy and scipy."""
