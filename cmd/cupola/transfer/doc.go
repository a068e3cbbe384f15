// Package transfer copies apps between the daemon and another Cloud Foundry, in both directions, by the v3 API of both.
//
// What an app is comes as its manifest, which the API writes and applies; its files come as the package that its droplet
// was made of, or as the droplet. A copy that was broken off goes on where it was when it is made again: see copied.
//
// A space of a backup is restored in the same way: the API is that of the backup's database, which is opened in this process (see offline).
package transfer
