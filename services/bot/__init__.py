"""The bot service: plays the seats of bots through the public API of the table service."""
