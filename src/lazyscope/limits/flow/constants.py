"""The constants of the flow solver; `docs/flow-algorithm.md` says what half or twice of each would do.

None of them is a property of the flow: a curve is as accurate as its `tolerance` asks, and they decide at what cost.
"""

# Panels of time. A panel runs from t₀ to t₁; its length is t₁/t₀.
POINTS = 12  # Chebyshev points of a panel, apart from the first, which is the last of the panel before
FIRST_PANEL = 0.3  # end of the first panel, in units of 1/(fastest rate at the start)
FIRST_LENGTH = 6.0  # length of the second panel
SHORTEST, LONGEST = 1.0005, 30.0  # bounds of the length; a flow that asks for less is given up
MOST_PANELS = 3000
ERROR_ORDER = 8.0  # the error of a panel is taken to grow like (log length)^this, when the next length is chosen
AIM = 0.25  # share of the tolerance that the next panel is planned to leave
ACCEPTED = 0.4  # share of the tolerance that a panel may leave, as its error is estimated and not known
AFTER_SUCCESS = (0.7, 1.6)  # bounds of the factor by which log length changes after a panel that was accepted
AFTER_FAILURE = (0.6, 0.85)  # and after one that was not
TAIL = 4  # last Chebyshev coefficients, which stand for those that 12 points do not see

# Newton's method with the true K.
NEWTON_SWEEPS = 8
NEWTON_ENOUGH = 0.1  # times √tolerance: a last step of this size leaves its square, a hundredth of the tolerance
SMALL_LAYER = 0.05  # where |a| is less, a follows from its own equation and not from the conservation law

# The guess: the same equations for typical weights.
GROUPS = 128  # groups that a larger spectrum is put into
GROUP_FLOOR = 0.02  # share of the largest eigenvalue, below which the logarithm no longer tells eigenvalues apart
GUESS_SWEEPS = 20
GUESS_ENOUGH, COARSE_GUESS_ENOUGH = 0.1, 0.5  # times NEWTON_ENOUGH·√tolerance: before Newton, before interpolation
TYPICAL_ENOUGH = 1e-3  # times √tolerance, where the typical flow itself is asked for
SLOW, STALE = 0.7, 0.3  # a step of more than this share of the one before: give up; compute the derivatives anew
NEAR = 0.02  # size of the steps from which on derivatives are kept
TRUSTED = 1.5  # length from which on a guess that fails says that the panel is too long
POWERS = (-3.0, 1.0)  # bounds of the power of t by which s is continued from the panel before
LAYER_CHANGES = (0.3, 0.5)  # most that a is continued by: on the first panel, and on a later one

# Shifts: the difference between these weights and typical ones.
STRIDE = 4  # K is computed at every fourth point, and at more where that is not enough
MANY_DIMENSIONS, COARSE_TOLERANCE = 100, 1e-5  # d and tolerance from which on shifts are interpolated
STRIDE_AGAIN = 0.1  # share of the tolerance: shifts that miss less let the next panel use fewer points
GIVE_UP = 1.1  # length below which shifts are no longer interpolated
ROUNDS = 5
LARGEST_SHIFT = 0.25  # larger ones say that the weights are not typical
MAY_MISS = 0.35  # share of the tolerance that interpolated shifts may miss
SHIFTED_ENOUGH = 0.3  # times the tolerance: the last step of the guess with interpolated shifts
BEYOND_SEEN = 3.0  # the last coefficient of the shifts that is seen, over this, stands for all beyond it
UNIT_FLOOR = 0.05  # of a unit of the shifts, which would vanish where everything is learned
LARGEST_DRIFT = 0.3  # most that a shift is taken to change with log t from the panel before
DIFFERENCE = 1e-5  # share of t over which the slope of Tr K of typical weights is measured

# Linear algebra.
HALVED = 64  # largest triangle that is inverted as a whole, and not by halves

# Rounding.
WORST_CONDITION = 1e8  # of WWᵀ in the 1-norm: its inverse keeps eight digits
WORST_MODES = 1e8  # condition number of the eigenvectors by which u is found on a panel: eight digits are left
LEARNED = 1e-15  # share of a direction that is not learned, below which it counts as learned
FIXED_POINT_SWEEPS, FIXED_POINT = 200, 1e-11  # of the fixed point of typical weights: sweeps, and its last step
