// Package monit reads the monit file of a BOSH job: which processes it has, and the programs that start and stop them. Tests and
// alerts in it ("if … then …") have no effect here, and neither have groups. What it does not know is an error with its line. It
// is pure.
package monit
