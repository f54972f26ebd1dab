"""Settings of the whole suite."""

from hypothesis import HealthCheck, settings

# Time is no property of the code under test here: workers share two cores, and coverage slows every call.
settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
