// Package history keeps metrics of apps on the disk at falling resolution, so that
// they outlive the daemon: a second for two hours, 15 seconds for two days, five
// minutes for 30 days.
//
// Each resolution is a level, with windows of time. The samples of a level's newest
// window are in memory, compressed, and in a journal, from which the next daemon
// reads them. When the window is over, they are written to a block, a file that does
// not change any more, and the journal is removed. Tracks of which nothing is measured any more are packed meanwhile. Blocks are removed by age, and the
// oldest ones when a level has more bytes than its share.
//
// What a coarser level gets is made of the samples of the finer one: the mean of a
// gauge (of some the maximum as well), the last value of what only grows.
//
// Append only writes to memory. One goroutine, Run, writes the files: the journals
// every second, and syncs them every minute.
package history
