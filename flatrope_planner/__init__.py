"""Vision-language-action planning for ROS 2 with an exactly verified speculative reasoner."""

from pkgutil import extend_path

# The generated messages lie in the installed part of this package, also when the modules are imported from a checkout.
__path__ = extend_path(__path__, __name__)
