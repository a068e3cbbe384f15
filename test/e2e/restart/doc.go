// Package restart tests daemons that are killed, restarted and upgraded, on disks that are full, damaged or cut off.
package restart
