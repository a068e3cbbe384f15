// Package lrp holds the nouns of the data plane: what runs, in Diego's words.
// A Desired says how many instances of which work there should be, an Actual
// is one of those instances, a Task runs once. A Cell runs Containers and
// reports Events. The package knows nothing of apps and imports only the
// standard library.
package lrp
