"""Who may do what. There is no authorizer yet: everybody may do everything."""
