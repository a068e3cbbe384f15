// Package model turns the messages of Diego's BBS API into the nouns of lrp and
// back, and says which of them Diego refuses. It is pure.
package model
