// Package services tests service instances, their brokers and bindings, and the built-in broker's data services.
package services
