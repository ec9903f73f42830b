"""A day of serving DeepSeek-V3 and R1, and what training V3 cost.

Source: deepseek-serving-2025; deepseek-2024, Table 1.
"""

from symbolic_cost.published.cases import Work

work = Work("deepseek-serving")
