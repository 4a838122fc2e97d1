"""A native upstream that answers what the input tells it: each step of a script is an item, an event or a fault.

The script is what follows the last ``script:`` of the input, a JSON list of steps, or an object of such lists by the
name of the model, so that two routes can differ. ``script.py`` says what the steps are.
"""
