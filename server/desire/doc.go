// Package desire derives what runs from what users asked for: the rows of
// package cf become lrp.Desired, lrp.RunInfo and routes. It does in pure
// functions what Cloud Controller does when it talks to Diego, so that what
// runs cannot drift from the rows.
package desire
