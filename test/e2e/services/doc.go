// Package services tests service instances, their brokers and bindings.
package services
