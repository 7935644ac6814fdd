"""The dashboard: pages made on the server, which can be read without script, and are kept up to date by a little."""
