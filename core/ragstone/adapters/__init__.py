"""What adapters of models and handlers of frameworks stand on."""
