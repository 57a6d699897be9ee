"""The linear and the quadratic part of a target: coefficients, their spectrum without noise, and shares."""
