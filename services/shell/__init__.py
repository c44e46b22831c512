"""The shell that all services share: log store, gRPC server, tokens, metrics, logs, configuration."""
