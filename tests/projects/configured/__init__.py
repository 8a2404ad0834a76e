"""What meson installs."""
