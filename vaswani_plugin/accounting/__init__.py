"""What a configuration costs, from closed formulas: parameters, floating-point operations, memory."""
