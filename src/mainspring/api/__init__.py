"""The HTTP API: a skin over the app. It decides who may ask, and says in HTTP what the app answers."""
