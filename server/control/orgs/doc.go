// Package orgs has the verbs of organizations, spaces and users, and of what is given to
// them: roles, quotas, isolation segments, placement pools, security groups.
package orgs
