"""The lobby service: players, rooms, opponents, presence. State is records in a store; replicas are alike."""
