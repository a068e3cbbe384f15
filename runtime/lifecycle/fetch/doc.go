// Package fetch downloads a buildpack that an app names by URL: a zip file, or
// a git repository with a branch, tag or commit behind "#". It runs inside the
// app's staging container, as Cloud Foundry's builder does: what may be
// connected to, which resolver is asked and which proxies are used is what holds
// for any program of that staging. The daemon connects nowhere.
//
// It is a program beside the lifecycle command because the git client would slow
// down the start of every tool.
package fetch
