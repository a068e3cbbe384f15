package api

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// where a write takes place, which decides what one sees who may not make it.
type where int

const (
	platform   where = iota // known to all: 403
	inOrg                   // seen by the org's members: others get 404
	inSpace                 // seen by the space's members and the org's managers: others get 404
	namedOrg                // the same, but named in the body: others get 422
	namedSpace              // likewise
	named422                // those without access get 422
	hidden                  // those without access get 404
	ofRoute                 // seen by the org's auditors too: others get 404
	sharing                 // the same, but 422 for who may not write to the other space
	ofDomain                // of an org: not seen by its users without another role
	ofBroker                // seen by those with a role in its broker's space: others get 404
	ofRouting               // of the routing API, which answers 401 to whoever may not
	ofSelf                  // what each user has who may write
	ofAdmin                 // what the admin has: others get 404
)

// attempt is a request of a write route that an admin succeeds with.
type attempt struct {
	path   string
	body   string
	status int
	where  where
}

const (
	toSpace      = `"relationships": {"space": {"data": {"guid": "space-1"}}}`
	toApp        = `"relationships": {"app": {"data": {"guid": "app-1"}}}`
	toOrg        = `"relationships": {"organization": {"data": {"guid": "org-1"}}}`
	toService    = `"service_instance": {"data": {"guid": "ups-1"}}`
	labels       = `{"metadata": {"labels": {"a": "b"}}}`
	policyBody   = `{"policies": [{"source": {"id": "app-1"}, "destination": {"id": "app-1", "protocol": "tcp", "ports": {"start": 8080, "end": 8080}}}]}`
	someManifest = "applications:\n- name: hello\n"
)

// attempts has every write route of the table: TestAccess fails for one that
// is not here.
var attempts = map[string]attempt{
	"POST /v3/admin/actions/clear_buildpack_cache":                             {"/v3/admin/actions/clear_buildpack_cache", "", 202, platform},
	"POST /v3/app_usage_events/actions/destructively_purge_all_and_reseed":     {"/v3/app_usage_events/actions/destructively_purge_all_and_reseed", "", 200, platform},
	"POST /v3/service_usage_events/actions/destructively_purge_all_and_reseed": {"/v3/service_usage_events/actions/destructively_purge_all_and_reseed", "", 200, platform},
	"POST /v1/deployments":                                                   {"/v1/deployments", `{"manifest": "name: nats"}`, 202, platform},
	"POST /v1/deployments/render":                                            {"/v1/deployments/render", `{"manifest": "name: nats"}`, 200, platform},
	"POST /v1/deployments/{name}/tasks":                                      {"/v1/deployments/nats/tasks", `{"kind": "start"}`, 202, platform},
	"POST /v1/configs":                                                       {"/v1/configs", `{"type": "cloud", "name": "x", "content": "azs: []"}`, 201, platform},
	"DELETE /v1/configs":                                                     {"/v1/configs?type=cloud&name=default", "", 204, platform},
	"DELETE /v1/configs/{number}":                                            {"/v1/configs/1", "", 204, platform},
	"POST /v1/releases":                                                      {"/v1/releases", `{"url": "http://releases.test/r.tgz"}`, 201, platform},
	"DELETE /v1/releases/{name}/{version}":                                   {"/v1/releases/nats/1", "", 204, platform},
	"DELETE /v1/deployment_tasks/{number}":                                   {"/v1/deployment_tasks/1", "", 200, platform},
	"POST /v1/droplets/{guid}/images":                                        {"/v1/droplets/droplet-1/images", "", 200, inSpace},
	"POST /v1/service_instances/{guid}/backups":                              {"/v1/service_instances/db-1/backups", "", 202, inSpace},
	"POST /v1/service_instances/{guid}/actions/restore":                      {"/v1/service_instances/db-1/actions/restore", `{"backup": {"guid": "backup-1"}}`, 202, inSpace},
	"DELETE /v1/service_backups/{guid}":                                      {"/v1/service_backups/backup-1", "", 204, inSpace},
	"POST /v1/ssh_keys":                                                      {"/v1/ssh_keys", `{"public_key": "` + keyOfSelf + `"}`, 201, ofSelf},
	"DELETE /v1/ssh_keys/{guid}":                                             {"/v1/ssh_keys/ssh-key-1", "", 204, ofAdmin},
	"POST /v1/disks/{guid}/attach":                                           {"/v1/disks/disk-1/attach", `{"deployment": "nats", "group": "none", "index": 0}`, 422, platform},
	"POST /v1/disks/{guid}/orphan":                                           {"/v1/disks/disk-1/orphan", "", 204, platform},
	"DELETE /v1/disks/{guid}":                                                {"/v1/disks/disk-1", "", 204, platform},
	"POST /v3/apps":                                                          {"/v3/apps", `{"name": "new", ` + toSpace + `}`, 201, namedSpace},
	"PATCH /v3/apps/{guid}":                                                  {"/v3/apps/app-1", labels, 200, inSpace},
	"DELETE /v3/apps/{guid}":                                                 {"/v3/apps/app-1", "", 202, inSpace},
	"POST /v3/apps/{guid}/actions/clear_buildpack_cache":                     {"/v3/apps/app-1/actions/clear_buildpack_cache", "", 202, inSpace},
	"POST /v3/apps/{guid}/actions/start":                                     {"/v3/apps/app-1/actions/start", "", 200, inSpace},
	"POST /v3/apps/{guid}/actions/stop":                                      {"/v3/apps/app-1/actions/stop", "", 200, inSpace},
	"POST /v3/apps/{guid}/actions/restart":                                   {"/v3/apps/app-1/actions/restart", "", 200, inSpace},
	"PATCH /v3/apps/{guid}/environment_variables":                            {"/v3/apps/app-1/environment_variables", `{"var": {"A": "B"}}`, 200, inSpace},
	"PATCH /v3/apps/{guid}/features/{name}":                                  {"/v3/apps/app-1/features/revisions", `{"enabled": true}`, 200, inSpace},
	"PATCH /v3/apps/{guid}/processes/{type}":                                 {"/v3/apps/app-1/processes/web", labels, 200, inSpace},
	"POST /v3/apps/{guid}/processes/{type}/actions/scale":                    {"/v3/apps/app-1/processes/web/actions/scale", `{"instances": 2}`, 202, inSpace},
	"DELETE /v3/apps/{guid}/processes/{type}/instances/{index}":              {"/v3/apps/app-1/processes/web/instances/0", "", 204, inSpace},
	"PATCH /v3/apps/{guid}/relationships/current_droplet":                    {"/v3/apps/app-1/relationships/current_droplet", `{"data": {"guid": "droplet-1"}}`, 200, inSpace},
	"POST /v3/apps/{guid}/sidecars":                                          {"/v3/apps/app-1/sidecars", `{"name": "new", "command": "c", "process_types": ["web"]}`, 201, inSpace},
	"PUT /v1/apps/{guid}/policy":                                             {"/v1/apps/app-1/policy", `{"instance_min_count": 1, "instance_max_count": 2, "scaling_rules": []}`, 200, inSpace},
	"POST /v1/apps/{guid}/metrics":                                           {"/v1/apps/app-1/metrics", `{}`, 401, platform},
	"DELETE /v1/apps/{guid}/policy":                                          {"/v1/apps/app-1/policy", "", 200, inSpace},
	"POST /jobs":                                                             {"/jobs?app_guid=app-1", `{"name": "report", "command": "x"}`, 201, namedSpace},
	"DELETE /jobs/{guid}":                                                    {"/jobs/job-1", "", 204, inSpace},
	"POST /jobs/{guid}/execute":                                              {"/jobs/job-1/execute", "", 201, inSpace},
	"POST /jobs/{guid}/schedules":                                            {"/jobs/job-1/schedules", `{"expression": "@daily"}`, 201, inSpace},
	"PATCH /jobs/{guid}/schedules/{schedule}":                                {"/jobs/job-1/schedules/schedule-1", `{"enabled": false}`, 200, inSpace},
	"DELETE /jobs/{guid}/schedules/{schedule}":                               {"/jobs/job-1/schedules/schedule-1", "", 204, inSpace},
	"POST /calls":                                                            {"/calls?app_guid=app-1", `{"name": "report", "url": "http://x.test"}`, 201, namedSpace},
	"DELETE /calls/{guid}":                                                   {"/calls/call-1", "", 204, inSpace},
	"POST /calls/{guid}/execute":                                             {"/calls/call-1/execute", "", 201, inSpace},
	"POST /calls/{guid}/schedules":                                           {"/calls/call-1/schedules", `{"expression": "@daily"}`, 201, inSpace},
	"PATCH /calls/{guid}/schedules/{schedule}":                               {"/calls/call-1/schedules/schedule-2", `{"enabled": false}`, 200, inSpace},
	"DELETE /calls/{guid}/schedules/{schedule}":                              {"/calls/call-1/schedules/schedule-2", "", 204, inSpace},
	"POST /v3/apps/{guid}/tasks":                                             {"/v3/apps/app-1/tasks", `{"command": "x"}`, 202, inSpace},
	"POST /v3/builds":                                                        {"/v3/builds", `{"package": {"guid": "package-1"}}`, 201, named422},
	"PATCH /v3/builds/{guid}":                                                {"/v3/builds/build-1", labels, 200, inSpace},
	"POST /v3/buildpacks":                                                    {"/v3/buildpacks", `{"name": "new"}`, 201, platform},
	"PATCH /v3/buildpacks/{guid}":                                            {"/v3/buildpacks/buildpack-1", labels, 200, platform},
	"DELETE /v3/buildpacks/{guid}":                                           {"/v3/buildpacks/buildpack-1", "", 202, platform},
	"POST /v3/buildpacks/{guid}/upload":                                      {"/v3/buildpacks/buildpack-1/upload", uploadBody, 202, platform},
	"PATCH /v3/deployments/{guid}":                                           {"/v3/deployments/deployment-1", labels, 200, inSpace},
	"POST /v3/deployments/{guid}/actions/cancel":                             {"/v3/deployments/deployment-1/actions/cancel", "", 200, hidden},
	"POST /v3/deployments/{guid}/actions/continue":                           {"/v3/deployments/deployment-1/actions/continue", "", 200, hidden},
	"POST /v3/deployments":                                                   {"/v3/deployments", `{` + toApp + `}`, 201, named422},
	"POST /v3/domains":                                                       {"/v3/domains", `{"name": "new.test", ` + toOrg + `}`, 201, namedOrg},
	"PATCH /v3/domains/{guid}":                                               {"/v3/domains/domain-2", labels, 200, ofDomain},
	"PUT /v3/domains/{guid}/certificate":                                     {"/v3/domains/domain-2/certificate", domainPair.body(), 200, ofDomain},
	"DELETE /v3/domains/{guid}/certificate":                                  {"/v3/domains/domain-2/certificate", "", 204, ofDomain},
	"DELETE /v3/domains/{guid}":                                              {"/v3/domains/domain-3", "", 202, ofDomain},
	"POST /v3/domains/{guid}/relationships/shared_organizations":             {"/v3/domains/domain-2/relationships/shared_organizations", `{"data": []}`, 200, ofDomain},
	"DELETE /v3/domains/{guid}/relationships/shared_organizations/{org}":     {"/v3/domains/domain-2/relationships/shared_organizations/org-2", "", 204, ofDomain},
	"POST /v3/droplets":                                                      {"/v3/droplets", `{` + toApp + `}`, 201, namedSpace},
	"POST /v3/droplets/{guid}/upload":                                        {"/v3/droplets/droplet-3/upload", uploadDropletBody, 202, inSpace},
	"PATCH /v3/droplets/{guid}":                                              {"/v3/droplets/droplet-1", labels, 200, inSpace},
	"DELETE /v3/droplets/{guid}":                                             {"/v3/droplets/droplet-2", "", 202, inSpace},
	"PATCH /v3/environment_variable_groups/{name}":                           {"/v3/environment_variable_groups/running", `{"var": {"A": "B"}}`, 200, platform},
	"PATCH /v3/feature_flags/{name}":                                         {"/v3/feature_flags/diego_docker", `{"enabled": true}`, 200, platform},
	"POST /v3/isolation_segments":                                            {"/v3/isolation_segments", `{"name": "x"}`, 201, platform},
	"PATCH /v3/isolation_segments/{guid}":                                    {"/v3/isolation_segments/iso-1", labels, 200, inOrg},
	"DELETE /v3/isolation_segments/{guid}":                                   {"/v3/isolation_segments/iso-1", "", 422, inOrg},
	"POST /v3/isolation_segments/{guid}/relationships/organizations":         {"/v3/isolation_segments/iso-1/relationships/organizations", `{"data": [{"guid": "org-1"}]}`, 200, inOrg},
	"DELETE /v3/isolation_segments/{guid}/relationships/organizations/{org}": {"/v3/isolation_segments/iso-1/relationships/organizations/org-1", "", 204, inOrg},
	"POST /v3/placement_pools":                                               {"/v3/placement_pools", `{"name": "new"}`, 201, platform},
	"PATCH /v3/placement_pools/{guid}":                                       {"/v3/placement_pools/pool-1", labels, 200, platform},
	"DELETE /v3/placement_pools/{guid}":                                      {"/v3/placement_pools/pool-1", "", 202, platform},
	"POST /v3/placement_pools/{guid}/relationships/spaces":                   {"/v3/placement_pools/pool-1/relationships/spaces", `{"data": [{"guid": "space-1"}]}`, 200, platform},
	"DELETE /v3/placement_pools/{guid}/relationships/spaces/{space}":         {"/v3/placement_pools/pool-1/relationships/spaces/space-2", "", 204, platform},
	"POST /v3/placement_pools/{guid}/relationships/apps":                     {"/v3/placement_pools/pool-1/relationships/apps", `{"data": [{"guid": "app-1"}]}`, 200, platform},
	"DELETE /v3/placement_pools/{guid}/relationships/apps/{app}":             {"/v3/placement_pools/pool-1/relationships/apps/app-1", "", 204, platform},
	"POST /routing/v1/router_groups":                                         {"/routing/v1/router_groups", `{"name": "g", "type": "tcp", "reservable_ports": "3000"}`, 201, ofRouting},
	"PUT /routing/v1/router_groups/{guid}":                                   {"/routing/v1/router_groups/" + cf.DefaultTCPGUID, `{"reservable_ports": "1024-1027"}`, 200, ofRouting},
	"DELETE /routing/v1/router_groups/{guid}":                                {"/routing/v1/router_groups/group-1", "", 204, ofRouting},
	"POST /networking/v1/external/policies":                                  {"/networking/v1/external/policies", policyBody, 200, platform},
	"POST /networking/v1/external/policies/delete":                           {"/networking/v1/external/policies/delete", policyBody, 200, platform},
	"POST /v3/organizations":                                                 {"/v3/organizations", `{"name": "new"}`, 201, platform},
	"PATCH /v3/organizations/{guid}":                                         {"/v3/organizations/org-1", labels, 200, inOrg},
	"DELETE /v3/organizations/{guid}":                                        {"/v3/organizations/org-1", "", 202, inOrg},
	"PATCH /v3/organizations/{guid}/relationships/default_isolation_segment": {"/v3/organizations/org-1/relationships/default_isolation_segment", `{"data": null}`, 200, inOrg},
	"POST /v3/organization_quotas":                                           {"/v3/organization_quotas", `{"name": "new"}`, 201, platform},
	"PATCH /v3/organization_quotas/{guid}":                                   {"/v3/organization_quotas/quota-2", `{"name": "x"}`, 200, platform},
	"DELETE /v3/organization_quotas/{guid}":                                  {"/v3/organization_quotas/quota-2", "", 202, platform},
	"POST /v3/organization_quotas/{guid}/relationships/organizations":        {"/v3/organization_quotas/quota-2/relationships/organizations", `{"data": [{"guid": "org-1"}]}`, 200, platform},
	"POST /v3/packages":                                                      {"/v3/packages", `{"type": "bits", ` + toApp + `}`, 201, namedSpace},
	"PATCH /v3/packages/{guid}":                                              {"/v3/packages/package-1", labels, 200, inSpace},
	"DELETE /v3/packages/{guid}":                                             {"/v3/packages/package-1", "", 202, inSpace},
	"POST /v3/packages/{guid}/upload":                                        {"/v3/packages/package-2/upload", uploadBody, 200, inSpace},
	"PATCH /v3/processes/{guid}":                                             {"/v3/processes/app-1", labels, 200, inSpace},
	"POST /v3/processes/{guid}/actions/scale":                                {"/v3/processes/app-1/actions/scale", `{"instances": 2}`, 202, inSpace},
	"DELETE /v3/processes/{guid}/instances/{index}":                          {"/v3/processes/app-1/instances/0", "", 204, inSpace},
	"POST /v3/resource_matches":                                              {"/v3/resource_matches", `{"resources": [{"path": "a", "mode": "644", "checksum": {"value": "55ca6286e3e4f4fba5d0448333fa99fc5a404a73"}, "size_in_bytes": 3}]}`, 201, platform},
	"PATCH /v3/revisions/{guid}":                                             {"/v3/revisions/revision-1", labels, 200, inSpace},
	"POST /v3/roles":                                                         {"/v3/roles", `{"type": "space_auditor", "relationships": {"space": {"data": {"guid": "space-1"}}, "user": {"data": {"guid": "user-org_user"}}}}`, 201, platform},
	"DELETE /v3/roles/{guid}":                                                {"/v3/roles/role-space_auditor", "", 202, inSpace},
	"POST /v3/route_policies":                                                {"/v3/route_policies", `{"source": "cf:space:d76446a1-f429-4444-8797-be2f78b75b08", "relationships": {"route": {"data": {"guid": "route-11"}}}}`, 201, ofRoute},
	"PATCH /v3/route_policies/{guid}":                                        {"/v3/route_policies/policy-1", labels, 200, ofRoute},
	"DELETE /v3/route_policies/{guid}":                                       {"/v3/route_policies/policy-1", "", 204, ofRoute},
	"POST /v3/routes":                                                        {"/v3/routes", `{"host": "new", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`, 201, namedSpace},
	"PATCH /v3/routes/{guid}":                                                {"/v3/routes/route-1", labels, 200, ofRoute},
	"DELETE /v3/routes/{guid}":                                               {"/v3/routes/route-1", "", 202, ofRoute},
	"POST /v3/routes/{guid}/destinations":                                    {"/v3/routes/route-1/destinations", `{"destinations": [{"app": {"guid": "app-1"}, "port": 9000}]}`, 200, ofRoute},
	"PATCH /v3/routes/{guid}/destinations":                                   {"/v3/routes/route-1/destinations", `{"destinations": []}`, 200, ofRoute},
	"PATCH /v3/routes/{guid}/destinations/{destination}":                     {"/v3/routes/route-1/destinations/dest-1", `{"protocol": "http2"}`, 200, ofRoute},
	"DELETE /v3/routes/{guid}/destinations/{destination}":                    {"/v3/routes/route-1/destinations/dest-1", "", 204, ofRoute},
	"POST /v3/routes/{guid}/relationships/shared_spaces":                     {"/v3/routes/route-1/relationships/shared_spaces", `{"data": [{"guid": "space-3"}]}`, 200, sharing},
	"DELETE /v3/routes/{guid}/relationships/shared_spaces/{space}":           {"/v3/routes/route-1/relationships/shared_spaces/space-1", "", 422, ofRoute},
	"PATCH /v3/routes/{guid}/relationships/space":                            {"/v3/routes/route-1/relationships/space", `{"data": {"guid": "space-1"}}`, 200, ofRoute},
	"POST /v3/service_brokers":                                               {"/v3/service_brokers", `{"name": "new", "url": "http://b", "authentication": {"type": "basic", "credentials": {"username": "u", "password": "p"}}, ` + toSpace + `}`, 202, namedSpace},
	"PATCH /v3/service_brokers/{guid}":                                       {"/v3/service_brokers/broker-1", `{"name": "x"}`, 202, inSpace},
	"DELETE /v3/service_brokers/{guid}":                                      {"/v3/service_brokers/broker-1", "", 202, inSpace},
	"PATCH /v3/service_offerings/{guid}":                                     {"/v3/service_offerings/offering-1", labels, 200, ofBroker},
	"DELETE /v3/service_offerings/{guid}":                                    {"/v3/service_offerings/offering-1?purge=true", "", 204, ofBroker},
	"PATCH /v3/service_plans/{guid}":                                         {"/v3/service_plans/plan-1", labels, 200, ofBroker},
	"DELETE /v3/service_plans/{guid}":                                        {"/v3/service_plans/plan-1", "", 204, ofBroker},
	"PATCH /v3/service_plans/{guid}/visibility":                              {"/v3/service_plans/plan-1/visibility", `{"type": "public"}`, 422, ofBroker},
	"POST /v3/service_plans/{guid}/visibility":                               {"/v3/service_plans/plan-1/visibility", `{"type": "public"}`, 422, ofBroker},
	"DELETE /v3/service_plans/{guid}/visibility/{org}":                       {"/v3/service_plans/plan-1/visibility/org-1", "", 422, ofBroker},
	"POST /v3/security_groups":                                               {"/v3/security_groups", `{"name": "new"}`, 201, platform},
	"PATCH /v3/security_groups/{guid}":                                       {"/v3/security_groups/group-1", `{"name": "x"}`, 200, inSpace},
	"DELETE /v3/security_groups/{guid}":                                      {"/v3/security_groups/group-1", "", 202, inSpace},
	"POST /v3/security_groups/{guid}/relationships/{kind}":                   {"/v3/security_groups/group-1/relationships/staging_spaces", `{"data": [{"guid": "space-1"}]}`, 200, inSpace},
	"DELETE /v3/security_groups/{guid}/relationships/{kind}/{space}":         {"/v3/security_groups/group-1/relationships/running_spaces/space-1", "", 204, inSpace},
	"PATCH /v3/sidecars/{guid}":                                              {"/v3/sidecars/sidecar-1", `{"command": "x"}`, 200, inSpace},
	"DELETE /v3/sidecars/{guid}":                                             {"/v3/sidecars/sidecar-1", "", 204, inSpace},
	"POST /v3/space_quotas":                                                  {"/v3/space_quotas", `{"name": "new", ` + toOrg + `}`, 201, platform},
	"PATCH /v3/space_quotas/{guid}":                                          {"/v3/space_quotas/space-quota-1", `{"name": "x"}`, 200, inSpace},
	"DELETE /v3/space_quotas/{guid}":                                         {"/v3/space_quotas/space-quota-1", "", 422, inSpace},
	"POST /v3/space_quotas/{guid}/relationships/spaces":                      {"/v3/space_quotas/space-quota-1/relationships/spaces", `{"data": [{"guid": "space-1"}]}`, 200, inSpace},
	"DELETE /v3/space_quotas/{guid}/relationships/spaces/{space}":            {"/v3/space_quotas/space-quota-1/relationships/spaces/space-1", "", 204, inSpace},
	"POST /v3/spaces":                                                        {"/v3/spaces", `{"name": "new", ` + toOrg + `}`, 201, namedOrg},
	"PATCH /v3/spaces/{guid}":                                                {"/v3/spaces/space-1", labels, 200, inSpace},
	"DELETE /v3/spaces/{guid}":                                               {"/v3/spaces/space-1", "", 202, inSpace},
	"POST /v3/spaces/{guid}/actions/apply_manifest":                          {"/v3/spaces/space-1/actions/apply_manifest", someManifest, 202, inSpace},
	"PATCH /v3/spaces/{guid}/features/{name}":                                {"/v3/spaces/space-1/features/ssh", `{"enabled": true}`, 200, inSpace},
	"POST /v3/spaces/{guid}/manifest_diff":                                   {"/v3/spaces/space-1/manifest_diff", someManifest, 201, inSpace},
	"PATCH /v3/spaces/{guid}/relationships/isolation_segment":                {"/v3/spaces/space-1/relationships/isolation_segment", `{"data": null}`, 200, inSpace},
	"DELETE /v3/spaces/{guid}/routes":                                        {"/v3/spaces/space-1/routes?unmapped=true", "", 202, inSpace},
	"POST /v3/stacks":                                                        {"/v3/stacks", `{"name": "new"}`, 201, platform},
	"PATCH /v3/stacks/{guid}":                                                {"/v3/stacks/stack-1", labels, 200, platform},
	"DELETE /v3/stacks/{guid}":                                               {"/v3/stacks/stack-1", "", 204, platform},
	"PATCH /v3/tasks/{guid}":                                                 {"/v3/tasks/task-1", labels, 200, inSpace},
	"PUT /v3/tasks/{guid}/cancel":                                            {"/v3/tasks/task-1/cancel", "", 202, inSpace},
	"POST /v3/tasks/{guid}/actions/cancel":                                   {"/v3/tasks/task-1/actions/cancel", "", 202, inSpace},
	"POST /v3/users":                                                         {"/v3/users", `{"guid": "new"}`, 201, platform},
	"PATCH /v3/users/{guid}":                                                 {"/v3/users/user-org_user", labels, 200, inOrg},
	"DELETE /v3/users/{guid}":                                                {"/v3/users/user-org_user", "", 202, inOrg},

	"POST /v3/service_credential_bindings":                                    {"/v3/service_credential_bindings", `{"type": "app", "relationships": {"app": {"data": {"guid": "app-2"}}, ` + toService + `}}`, 201, namedSpace},
	"PATCH /v3/service_credential_bindings/{guid}":                            {"/v3/service_credential_bindings/binding-1", labels, 200, inSpace},
	"DELETE /v3/service_credential_bindings/{guid}":                           {"/v3/service_credential_bindings/binding-1", "", 204, inSpace},
	"POST /v3/service_instances":                                              {"/v3/service_instances", `{"type": "user-provided", "name": "new", ` + toSpace + `}`, 201, namedSpace},
	"PATCH /v3/service_instances/{guid}":                                      {"/v3/service_instances/ups-1", labels, 200, inSpace},
	"DELETE /v3/service_instances/{guid}":                                     {"/v3/service_instances/ups-1", "", 204, inSpace},
	"POST /v3/service_instances/{guid}/relationships/shared_spaces":           {"/v3/service_instances/db-1/relationships/shared_spaces", `{"data": [{"guid": "space-3"}]}`, 200, inSpace},
	"DELETE /v3/service_instances/{guid}/relationships/shared_spaces/{space}": {"/v3/service_instances/db-2/relationships/shared_spaces/space-3", "", 204, inSpace},
	"POST /v3/service_route_bindings":                                         {"/v3/service_route_bindings", `{"relationships": {"route": {"data": {"guid": "route-2"}}, ` + toService + `}}`, 201, namedSpace},
	"PATCH /v3/service_route_bindings/{guid}":                                 {"/v3/service_route_bindings/rb-1", labels, 200, inSpace},
	"DELETE /v3/service_route_bindings/{guid}":                                {"/v3/service_route_bindings/rb-1", "", 204, inSpace},
}

func TestSupporterSeesNoServices(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{as: "space_supporter", method: "GET", path: "/v3/apps/app-1/env", status: 200, want: `{"system_env_json": {"redacted_message": "[PRIVATE DATA HIDDEN]"}}`}})
}

// These stand for multipart bodies with a buildpack's zip and a droplet.
const (
	uploadBody        = "upload"
	uploadDropletBody = "upload a droplet"
)

// seedAccess adds the rows that attempts need.
func seedAccess(tx *store.Tx) error {
	for _, row := range []func() error{
		func() error { return seedApp(tx, "app-2", "other") },
		func() error { return seedPolicies(tx) },
		func() error {
			a, err := store.Apps.Get(tx, "app-2")
			if err != nil {
				return err
			}
			a.DropletGUID = ""
			return store.Apps.Update(tx, a)
		},
		func() error {
			p, err := store.Packages.Get(tx, "package-2")
			if err != nil {
				return err
			}
			p.State = cf.PackageAwaiting
			return store.Packages.Update(tx, p)
		},
		func() error {
			return store.Buildpacks.Insert(tx, &cf.Buildpack{Resource: guid("buildpack-1"), Name: "bp", State: "AWAITING_UPLOAD", Position: 4, Enabled: true, Lifecycle: "buildpack"})
		},
		func() error {
			return store.Droplets.Insert(tx, &cf.Droplet{Resource: guid("droplet-3"), AppGUID: "app-1", State: cf.DropletAwaiting})
		},
		func() error {
			return store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-2"), Name: "own.test", OrgGUID: "org-1", SharedOrgs: []string{"org-2"}})
		},
		func() error {
			return store.DomainCertificates.Insert(tx, &cf.DomainCertificate{Resource: guid("domain-2"), Certificate: domainPair.cert, Key: domainPair.key})
		},
		func() error {
			return store.Roles.Insert(tx, &cf.Role{Type: cf.OrgUser, UserGUID: "user-org_manager", OrgGUID: "org-2"})
		},
		func() error {
			return store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-3"), Name: "alone.test", OrgGUID: "org-1"})
		},
		func() error { return seedBroker(tx) },
		func() error { return store.FeatureFlags.Put(tx, &cf.FeatureFlag{Name: "route_sharing", Enabled: true}) },
		func() error { return seedServices(tx) },
		func() error { return seedBackup(tx) },
		func() error {
			return store.SSHKeys.Insert(tx, &cf.SSHKey{Resource: guid("ssh-key-1"), UserGUID: "user-admin", Name: "laptop", Fingerprint: "SHA256:1"})
		},
		func() error { return store.OrgQuotas.Insert(tx, &cf.OrgQuota{Resource: guid("quota-2"), Name: "q2"}) },
		func() error {
			return store.SpaceQuotas.Insert(tx, &cf.SpaceQuota{Resource: guid("space-quota-1"), Name: "sq", OrgGUID: "org-1", Limits: cf.QuotaLimits{PaidServices: true}})
		},
		func() error {
			s, err := store.Spaces.Get(tx, "space-1")
			if err != nil {
				return err
			}
			s.QuotaGUID = "space-quota-1"
			return store.Spaces.Update(tx, s)
		},
		func() error {
			return store.Revisions.Insert(tx, &cf.Revision{Resource: guid("revision-1"), AppGUID: "app-1", Version: 1})
		},
		func() error {
			return store.Deployments.Insert(tx, &cf.Deployment{Resource: guid("deployment-1"), AppGUID: "app-2", Strategy: cf.Canary, State: cf.Paused, StatusValue: cf.Active,
				StatusReason: "PAUSED", DropletGUID: "droplet-2", PreviousDroplet: "droplet-2", WebProcess: "app-2"})
		},
		func() error {
			return store.SecurityGroups.Insert(tx, &cf.SecurityGroup{Resource: guid("group-1"), Name: "sg", RunningSpaces: []string{"space-1"}})
		},
		func() error {
			return store.RouterGroups.Insert(tx, &cf.RouterGroup{Resource: guid("group-1"), Name: "more-tcp", Type: "tcp", Ports: "3000"})
		},
		func() error {
			return store.IsolationSegments.Insert(tx, &cf.IsolationSegment{Resource: guid("iso-1"), Name: "iso", Orgs: []string{"org-1"}})
		},
		func() error {
			return store.BOSHReleases.Insert(tx, &cf.BOSHRelease{Resource: guid("nats-release"), Name: "nats", Version: "1"})
		},
		func() error {
			return store.BOSHConfigs.Insert(tx, &cf.BOSHConfig{Type: "cloud", Name: "default", Content: []byte("azs: []")})
		},
		func() error {
			return store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Resource: guid("nats-1"), Name: "nats"})
		},
		func() error {
			return store.BOSHTasks.Insert(tx, &cf.BOSHTask{Resource: guid("task-of-nats"), Number: 1, DeploymentName: "nats", Kind: "stop", State: cf.BOSHQueued})
		},
		func() error {
			return store.BOSHDisks.Insert(tx, &cf.BOSHDisk{Resource: guid("disk-1"), DeploymentName: "nats", Group: "nats", SizeMB: 1, OrphanedAt: time.Unix(1, 0)})
		},
		func() error {
			return store.PlacementPools.Insert(tx, &cf.PlacementPool{Resource: guid("pool-1"), Name: "pool", Default: true})
		},
		func() error {
			s, err := store.Spaces.Get(tx, "space-2")
			if err != nil {
				return err
			}
			s.PoolGUID = "pool-1"
			return store.Spaces.Update(tx, s)
		},
		func() error {
			a, err := store.Apps.Get(tx, "app-1")
			if err != nil {
				return err
			}
			a.PoolGUID = "pool-1"
			return store.Apps.Update(tx, a)
		},
		func() error {
			return store.Stacks.Insert(tx, &cf.Stack{Resource: guid("stack-1"), Name: "s1", State: "ACTIVE"})
		},
		func() error {
			return store.AppJobs.Insert(tx, &cf.AppJob{Resource: guid("job-1"), AppGUID: "app-1", Kind: cf.KindJob, Name: "nightly", Command: "x", Timeout: 60})
		},
		func() error {
			return store.AppJobs.Insert(tx, &cf.AppJob{Resource: guid("call-1"), AppGUID: "app-1", Kind: cf.KindCall, Name: "nightly", URL: "http://x.test", Timeout: 60})
		},
		func() error {
			return store.JobSchedules.Insert(tx, &cf.JobSchedule{Resource: guid("schedule-1"), JobGUID: "job-1", Expression: "@daily", Enabled: true})
		},
		func() error {
			return store.JobSchedules.Insert(tx, &cf.JobSchedule{Resource: guid("schedule-2"), JobGUID: "call-1", Expression: "@daily", Enabled: true})
		},
		func() error {
			return store.JobExecutions.Insert(tx, &cf.JobExecution{Resource: guid("execution-1"), JobGUID: "job-1", ScheduleGUID: "schedule-1", State: cf.ExecutionSucceeded})
		},
		func() error {
			return store.JobExecutions.Insert(tx, &cf.JobExecution{Resource: guid("execution-2"), JobGUID: "call-1", ScheduleGUID: "schedule-2", State: cf.ExecutionSucceeded})
		},
		func() error {
			return store.ScalingPolicies.Insert(tx, &cf.ScalingPolicy{Resource: guid("policy-1"), AppGUID: "app-1", Policy: `{"instance_min_count": 1, "instance_max_count": 2}`})
		},
		func() error {
			return store.Tasks.Insert(tx, &cf.Task{Resource: guid("task-1"), AppGUID: "app-1", DropletGUID: "droplet-1", SequenceID: 1, State: cf.TaskRunning})
		},
		func() error {
			p, err := store.Processes.Get(tx, "app-1")
			if err != nil {
				return err
			}
			p.Sidecars = []cf.Sidecar{{GUID: "sidecar-1", Name: "s", Command: "c", ProcessTypes: []string{"web"}}}
			return store.Processes.Update(tx, p)
		},
	} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

// tableUsers are the columns of the table.
var tableUsers = []string{"admin", "read_only_admin", "global_auditor", "org_manager", "org_auditor", "org_billing_manager", "org_user",
	"space_manager", "space_developer", "space_supporter", "space_auditor", "nobody", anonymous}

// actorOf is a user with his role in org-1 or space-1.
func actorOf(user string) *authz.Actor {
	var roles []*cf.Role
	if t, ok := roleUsers[user]; ok {
		roles = []*cf.Role{{Type: t, OrgGUID: "org-1"}}
		if !t.OfOrg() {
			roles[0].SpaceGUID = "space-1"
		}
	}
	return authz.NewActor("", "", "", append([]string{"cloud_controller.read", "cloud_controller.write"}, scopeUsers[user]...), roles)
}

var here = authz.Place{OrgGUID: "org-1", SpaceGUID: "space-1"}

// expected is what the route table says of a user's attempt.
func expected(rule authz.Rule, user string, a attempt) int {
	actor := actorOf(user)
	sees := user != "nobody"
	readers := map[where]authz.Rule{hidden: authz.SpaceReader, inSpace: authz.SpaceReader, namedSpace: authz.SpaceReader, ofRoute: authz.RouteReader, sharing: authz.RouteReader, ofDomain: authz.RouteReader,
		ofBroker: authz.SpaceReader &^ authz.OrgManager}
	if rule, ok := readers[a.where]; ok {
		sees = actor.May(rule, here)
	}
	switch {
	case user == anonymous, rule&authz.Public != 0: // it takes no token
		return 401
	case (a.where == ofSelf || a.where == ofAdmin) && !actor.MayWrite():
		return 403
	case a.where == ofAdmin && !actor.Admin && actor.Everywhere():
		return 403
	case a.where == ofAdmin && !actor.Admin:
		return 404
	case a.where == ofSelf, a.where == ofAdmin:
		return a.status
	case a.where == sharing && user == "space_supporter":
		return 422
	case actor.May(rule, here) && (sees || a.where == platform || a.where == ofRouting):
		return a.status
	case a.where == ofRouting:
		return 401
	case a.where == named422, !sees && (a.where == namedOrg || a.where == namedSpace):
		return 422
	case !sees && a.where != platform, a.where == hidden:
		return 404
	}
	return 403
}

// found is what the route table says of a user's look: a status, or "none" for
// a list without the row.
func found(rt route, user string, l look) string {
	actor, rule, sees := actorOf(user), rt.rule, false
	if user != anonymous {
		sees = actor.May(l.seen, here)
	}
	switch {
	case user == anonymous && rule&(authz.Public|authz.Guest) == 0:
		return "401"
	case rule&authz.Public != 0:
		return "200"
	case !sees && l.row != "" && !strings.Contains(rt.pattern, "{"):
		return "none"
	case !sees && strings.Contains(rt.pattern, v2API): // CC: ModelController.find_guid_and_validate_access
		return "403"
	case !sees:
		return "404"
	case !actor.May(rule, here):
		return cmp.Or(l.refused, "403")
	}
	return fmt.Sprint(cmp.Or(l.says, 200))
}

// TestAccess makes a request of every route as every user. What changes
// something is done in a copy of the world. The table in testdata is what all of
// them get: a change of who may what shows there.
func TestAccess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector, and has nothing for it")
	}
	w := newWorld(t)
	w.write(seedAccess)
	w.seedLooks()
	table := "# What each role gets of each route, of a thing in its org or space: the HTTP status,\n# or none for a list without that thing. TestAccess asks over HTTP; see there for what each route is asked.\n"
	table += row("", tableUsers)
	zip := string(zipOf(t, "bin/compile", "x"))
	for _, rt := range (&Server{}).routes() {
		var cells []string
		for _, user := range tableUsers {
			cells = append(cells, w.check(t, rt, user, zip))
		}
		table += row(rt.pattern, cells)
	}
	for pattern := range attempts {
		if !slices.ContainsFunc((&Server{}).routes(), func(rt route) bool { return rt.pattern == pattern }) {
			t.Errorf("%s is no route", pattern)
		}
	}
	file := filepath.Join("testdata", "roles-routes.txt")
	if os.Getenv("CUPOLA_WRITE_TABLES") == "1" {
		if err := os.WriteFile(file, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(strings.Split(string(golden), "\n"), strings.Split(table, "\n")); diff != "" {
		t.Errorf("%s is not what is served; with CUPOLA_WRITE_TABLES=1 this test writes it (-file +served):\n%s", file, diff)
	}
}

// row is a line of the table.
func row(pattern string, cells []string) string {
	line := fmt.Sprintf("%-78s", pattern)
	for i, c := range cells {
		line += fmt.Sprintf(" %*s", len(tableUsers[i]), c)
	}
	return line + "\n"
}

// check makes a user's request of a route, and returns what came of it.
func (w *world) check(t *testing.T, rt route, user, zip string) string {
	t.Helper()
	method, _, _ := strings.Cut(rt.pattern, " ")
	if method == "GET" {
		l, ok := looks[rt.pattern]
		if !ok {
			t.Fatalf("%s: add it to looks", rt.pattern)
		}
		return w.checkLook(t, rt, user, l)
	}
	a, ok := attempts[rt.pattern]
	if !ok {
		t.Fatalf("%s: add it to attempts", rt.pattern)
	}
	want := expected(rt.rule, user, a)
	world := w
	if want == a.status {
		world = w.copy(t)
	}
	got := world.attempt(user, method, a, zip)
	if got.status != want {
		t.Errorf("%s: %s: got %d %s; want %d", rt.pattern, user, got.status, got.text, want)
	}
	return fmt.Sprint(got.status)
}

func (w *world) checkLook(t *testing.T, rt route, user string, l look) string {
	t.Helper()
	a := w.ask(user, "GET", l.path, "", "")
	got := fmt.Sprint(a.status)
	if a.status == 200 && !strings.Contains(a.text, l.row) {
		got = "none"
	}
	if want := found(rt, user, l); got != want {
		t.Errorf("%s: %s: got %s; want %s: %.200s", rt.pattern, user, got, want, a.text)
	}
	return got
}

func (w *world) attempt(user, method string, a attempt, zip string) answer {
	switch a.body {
	case uploadBody:
		return w.upload(user, a.path, "bits.zip", []byte(zip))
	case uploadDropletBody:
		return w.upload(user, a.path, "d.tgz", tgzOf(w.t, "app/run", "x"))
	case someManifest:
		return w.ask(user, method, a.path, a.body, "application/x-yaml")
	}
	return w.ask(user, method, a.path, a.body, "")
}

// copy is a separate world with the same rows, in which the same tokens are
// good.
func (w *world) copy(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"cupola.db", "cupola.db-wal", "store.key"} {
		data, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &world{t: t, dir: dir, tokens: w.tokens, saved: map[string]string{}}
	c.open()
	return c
}
