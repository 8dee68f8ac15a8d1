"""The course's colours: one for one idea everywhere, told apart by colour-blind eyes.

They are Okabe and Ito's; the maps are matplotlib's.
"""

PATCH, CLS, POSITION = "#0072B2", "#E69F00", "#CC79A7"
QUERY, KEY, VALUE = "#D55E00", "#56B4E9", "#009E73"
INK, FAINT, PAPER = "#222222", "#B8B8B8", "#F4F4F4"
WEIGHTS = "cividis"  # of attention
SIGNED = "PuOr"  # of numbers of either sign: orange below zero, white at zero, purple above
