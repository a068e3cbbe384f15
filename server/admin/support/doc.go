// Package support collects what helps to find out why a daemon does not work, and no
// secret: facts about the machine, the configuration without credentials, counts and
// sizes, the daemon's log, goroutines and heap. It has no variables, bindings,
// credentials or log lines of apps.
package support
