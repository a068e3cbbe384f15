// Package archive is the file that holds all of a cupola: a tar, compressed with
// zstd, that begins with a manifest of its members, each with its size and
// SHA-256, and ends with the manifest's own digest. So whatever is cut off,
// changed, added or left out is seen, and a reader knows how much there is to
// come before it writes anything.
//
// Members bear the names that they have in a data directory. What a stack or an
// image is made of lies under StacksDir and ImagesDir instead, until it has been
// unpacked.
package archive
