// Package web holds the web console: static files that server/console serves below
// /console/. The sources are in src, libraries in vendor; build makes dist of them
// (make web), which is committed, so that building cupola needs no other tool than Go.
//
// The files that FS returns:
//
//	index.html                 not compressed; the answer to each path of a screen
//	assets/NAME-HASH.EXT.gz    compressed with gzip; EXT is js, css or svg
//
// The browser asks for /console/assets/NAME-HASH.EXT. The hash is of the contents, so
// an asset never changes: it may be cached for ever. There is no uncompressed copy.
package web
