// Package deletion removes what can be much, or has services of brokers in it:
// apps, spaces, orgs, domains, unmapped routes. A job does a part in each
// transaction; brokers are asked first to delete what they have.
package deletion
