// Package trust puts the daemon's CA into the stores of trusted certificates of this
// machine, and removes it: the system's, and the databases of Chromium and Firefox of
// the user who calls.
package trust
