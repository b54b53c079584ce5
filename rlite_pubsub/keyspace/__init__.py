"""Keys and the values behind them: a file for each type, and a folder for topics."""
