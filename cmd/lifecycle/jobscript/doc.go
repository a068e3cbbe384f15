// Package jobscript runs a script of a BOSH job whose processes run in other containers. The script finds their pidfiles, as bpm makes
// them: each names a stand-in, which passes signals on and ends with the process, like the init that bpm puts before a process.
package jobscript
