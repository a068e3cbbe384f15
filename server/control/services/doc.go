// Package services has the verbs of service instances and of their bindings to
// apps and routes: what is user-provided changes at once, for what a broker has
// they make the job that asks it (see package broker). They say too whether
// what an app is bound to fits into its environment.
package services
