// Package manifests applies app manifests to the apps of a space: with the verbs
// of apps, routes and services, in an order that is Cloud Controller's.
package manifests
