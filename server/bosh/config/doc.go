// Package config has the operator's configs: cloud-configs name the AZs, VM types,
// disk types and networks that manifests may use, runtime-configs add releases,
// jobs, variables and tags to all deployments. Errors are the director's. It is pure.
package config
