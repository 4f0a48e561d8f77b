// Package config turns one YAML file into a checked value: the file, then the
// defaults, then the checks. It holds the only list of the kinds of sources and of
// destinations; each member decodes its own settings.
//
// It promises that a key that nobody knows is refused, that all faults of a file are
// told at once with their line and an excerpt, and that nothing is ignored in
// silence: what is understood and valid, but not served by this build, is a [Note].
// It refuses secrets that stand in the file itself: they come from files (*_file) or
// from the environment (${NAME}), and no message shows their content.
package config
