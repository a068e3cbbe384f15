// Package buildpack fetches the buildpacks that apps name by URL: a zip file,
// or a git repository with a branch, tag or commit behind "#". Either becomes a
// zip among the blobs. What a server may send is bounded, and where it may be is
// the caller's to say.
package buildpack
