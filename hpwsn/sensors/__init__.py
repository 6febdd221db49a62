"""Sensor virtualisation: physical sensors, their readings, and the virtual sensors that users see."""
