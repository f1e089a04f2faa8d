// Nothing but the common headers: see meson.build.
