package api

import (
	"strings"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// look is a request of a GET route.
type look struct {
	path string
	seen authz.Rule // by whom the row is seen: others get 404, or a list without it
	row  string     // of a list: the GUID, or name, of the row
	says int        // to who may; 0: 200

	refused string // what those get who see the thing but may not; "": 403
}

// Who sees which rows, as Cloud Controller has it.
const (
	byAll     = authz.Anyone
	byOrg     = authz.OrgReader
	bySpace   = authz.SpaceReader
	byRoute   = authz.RouteReader // domains, too: the billing manager sees the platform's alone
	byWide    = authz.AdminReadOnly | authz.GlobalAuditor
	byEvent   = byWide | authz.OrgAuditor | authz.SpaceDeveloper | authz.SpaceAuditor | authz.SpaceSupporter
	byBroker  = byWide | authz.SpaceDeveloper | authz.SpaceSupporter
	byMembers = authz.SpaceReader &^ authz.OrgManager // of the space of a broker
)

// looks has every GET route of the table: TestAccess fails for one that is not
// here.
var looks = map[string]look{
	"GET /{$}":                   {path: "/", seen: byAll},
	"GET /v3":                    {path: "/v3", seen: byAll},
	"GET /v3/info":               {path: "/v3/info", seen: byAll},
	"GET /v3/info/usage_summary": {path: "/v3/info/usage_summary", seen: byAll, refused: "404"},

	"GET /v3/app_usage_events":            {path: "/v3/app_usage_events", seen: byWide, row: "usage-1"},
	"GET /v3/app_usage_events/{guid}":     {path: "/v3/app_usage_events/usage-1", seen: byWide},
	"GET /v3/service_usage_events":        {path: "/v3/service_usage_events", seen: byWide, row: "usage-2"},
	"GET /v3/service_usage_events/{guid}": {path: "/v3/service_usage_events/usage-2", seen: byWide},

	"GET /v3/apps":                                             {path: "/v3/apps", seen: bySpace, row: "app-1"},
	"GET /v3/apps/{guid}":                                      {path: "/v3/apps/app-1", seen: bySpace},
	"GET /v3/apps/{guid}/builds":                               {path: "/v3/apps/app-1/builds", seen: bySpace, row: "build-1"},
	"GET /v3/apps/{guid}/droplets":                             {path: "/v3/apps/app-1/droplets", seen: bySpace, row: "droplet-1"},
	"GET /v3/apps/{guid}/droplets/current":                     {path: "/v3/apps/app-1/droplets/current", seen: bySpace},
	"GET /v3/apps/{guid}/env":                                  {path: "/v3/apps/app-1/env", seen: bySpace},
	"GET /v3/apps/{guid}/environment_variables":                {path: "/v3/apps/app-1/environment_variables", seen: bySpace},
	"GET /v3/apps/{guid}/manifest":                             {path: "/v3/apps/app-1/manifest", seen: bySpace},
	"GET /v3/apps/{guid}/packages":                             {path: "/v3/apps/app-1/packages", seen: bySpace, row: "package-1"},
	"GET /v3/apps/{guid}/features":                             {path: "/v3/apps/app-1/features", seen: bySpace, row: "ssh"},
	"GET /v3/apps/{guid}/features/{name}":                      {path: "/v3/apps/app-1/features/ssh", seen: bySpace},
	"GET /v3/apps/{guid}/permissions":                          {path: "/v3/apps/app-1/permissions", seen: bySpace},
	"GET /v3/apps/{guid}/processes":                            {path: "/v3/apps/app-1/processes", seen: bySpace, row: "app-1"},
	"GET /v3/apps/{guid}/processes/{type}":                     {path: "/v3/apps/app-1/processes/web", seen: bySpace},
	"GET /v3/apps/{guid}/processes/{type}/stats":               {path: "/v3/apps/app-1/processes/web/stats", seen: bySpace},
	"GET /v3/apps/{guid}/processes/{type}/process_instances":   {path: "/v3/apps/app-1/processes/web/process_instances", seen: bySpace},
	"GET /v3/apps/{guid}/relationships/current_droplet":        {path: "/v3/apps/app-1/relationships/current_droplet", seen: bySpace},
	"GET /v3/apps/{guid}/revisions":                            {path: "/v3/apps/app-1/revisions", seen: bySpace, row: "revision-1"},
	"GET /v3/apps/{guid}/revisions/deployed":                   {path: "/v3/apps/app-1/revisions/deployed", seen: bySpace},
	"GET /v3/apps/{guid}/routes":                               {path: "/v3/apps/app-1/routes", seen: bySpace, row: "route-1"},
	"GET /v3/apps/{guid}/sidecars":                             {path: "/v3/apps/app-1/sidecars", seen: bySpace, row: "sidecar-1"},
	"GET /v3/apps/{guid}/ssh_enabled":                          {path: "/v3/apps/app-1/ssh_enabled", seen: bySpace},
	"GET /health":                                              {path: "/health", seen: byAll},
	"GET /v1/apps/{guid}/policy":                               {path: "/v1/apps/app-1/policy", seen: bySpace},
	"GET /v1/apps/{guid}/scaling_histories":                    {path: "/v1/apps/app-1/scaling_histories", seen: bySpace},
	"GET /v1/apps/{guid}/aggregated_metric_histories/{metric}": {path: "/v1/apps/app-1/aggregated_metric_histories/cpu", seen: bySpace},
	"GET /jobs":                                                            {path: "/jobs", seen: bySpace, row: "job-1"},
	"GET /jobs/{guid}":                                                     {path: "/jobs/job-1", seen: bySpace},
	"GET /jobs/{guid}/history":                                             {path: "/jobs/job-1/history", seen: bySpace, row: "execution-1"},
	"GET /jobs/{guid}/schedules":                                           {path: "/jobs/job-1/schedules", seen: bySpace, row: "schedule-1"},
	"GET /jobs/{guid}/schedules/{schedule}/history":                        {path: "/jobs/job-1/schedules/schedule-1/history", seen: bySpace, row: "execution-1"},
	"GET /calls":                                                           {path: "/calls", seen: bySpace, row: "call-1"},
	"GET /calls/{guid}":                                                    {path: "/calls/call-1", seen: bySpace},
	"GET /calls/{guid}/history":                                            {path: "/calls/call-1/history", seen: bySpace, row: "execution-2"},
	"GET /calls/{guid}/schedules":                                          {path: "/calls/call-1/schedules", seen: bySpace, row: "schedule-2"},
	"GET /calls/{guid}/schedules/{schedule}/history":                       {path: "/calls/call-1/schedules/schedule-2/history", seen: bySpace, row: "execution-2"},
	"GET /v3/apps/{guid}/tasks":                                            {path: "/v3/apps/app-1/tasks", seen: bySpace, row: "task-1"},
	"GET /v3/audit_events":                                                 {path: "/v3/audit_events", seen: byEvent, row: "event-1"},
	"GET /v3/audit_events/{guid}":                                          {path: "/v3/audit_events/event-1", seen: byEvent},
	"GET /v3/builds":                                                       {path: "/v3/builds", seen: bySpace, row: "build-1"},
	"GET /v3/builds/{guid}":                                                {path: "/v3/builds/build-1", seen: bySpace},
	"GET /v3/buildpacks":                                                   {path: "/v3/buildpacks", seen: byAll, row: "buildpack-1"},
	"GET /v3/buildpacks/{guid}":                                            {path: "/v3/buildpacks/buildpack-1", seen: byAll},
	"GET /v3/deployments":                                                  {path: "/v3/deployments", seen: bySpace, row: "deployment-1"},
	"GET /v3/deployments/{guid}":                                           {path: "/v3/deployments/deployment-1", seen: bySpace},
	"GET /v3/domains":                                                      {path: "/v3/domains", seen: byRoute, row: "domain-2"},
	"GET /v3/domains/{guid}":                                               {path: "/v3/domains/domain-2", seen: byRoute},
	"GET /v3/domains/{guid}/certificate":                                   {path: "/v3/domains/domain-2/certificate", seen: byRoute},
	"GET /v3/domains/{guid}/route_reservations":                            {path: "/v3/domains/domain-2/route_reservations?host=x", seen: byRoute},
	"GET /v3/droplets":                                                     {path: "/v3/droplets", seen: bySpace, row: "droplet-1"},
	"GET /v3/droplets/{guid}":                                              {path: "/v3/droplets/droplet-1", seen: bySpace},
	"GET /v3/droplets/{guid}/download":                                     {path: "/v3/droplets/droplet-1/download", seen: bySpace},
	"GET /v1/droplets/{guid}/images/{image}/layers/{layer}":                {path: "/v1/droplets/droplet-1/images/" + packedImage + "/layers/" + packedLayer, seen: bySpace},
	"GET /v3/environment_variable_groups/{name}":                           {path: "/v3/environment_variable_groups/running", seen: byAll},
	"GET /v3/feature_flags":                                                {path: "/v3/feature_flags", seen: byAll, row: "diego_docker"},
	"GET /v3/feature_flags/{name}":                                         {path: "/v3/feature_flags/diego_docker", seen: byAll},
	"GET /v1/cells":                                                        {path: "/v1/cells", seen: byAll},
	"GET /v1/tags":                                                         {path: "/v1/tags", seen: byAll},
	"GET /v1/deployments":                                                  {path: "/v1/deployments", seen: byAll},
	"GET /v1/deployments/{name}":                                           {path: "/v1/deployments/nats", seen: byAll},
	"GET /v1/deployments/{name}/instances":                                 {path: "/v1/deployments/nats/instances", seen: byAll},
	"GET /v1/deployments/{name}/errands":                                   {path: "/v1/deployments/nats/errands", seen: byAll},
	"GET /v1/deployments/{name}/problems":                                  {path: "/v1/deployments/nats/problems", seen: byAll},
	"GET /v1/deployments/{name}/variables":                                 {path: "/v1/deployments/nats/variables", seen: byAll},
	"GET /v1/configs":                                                      {path: "/v1/configs", seen: byAll},
	"GET /v1/configs/{number}":                                             {path: "/v1/configs/1", seen: byAll},
	"GET /v1/releases":                                                     {path: "/v1/releases", seen: byAll},
	"GET /v1/releases/{name}/{version}":                                    {path: "/v1/releases/nats/1", seen: byAll},
	"GET /v1/deployment_events":                                            {path: "/v1/deployment_events", seen: byAll},
	"GET /v1/deployment_locks":                                             {path: "/v1/deployment_locks", seen: byAll},
	"GET /v1/deployment_tasks":                                             {path: "/v1/deployment_tasks", seen: byAll},
	"GET /v1/deployment_tasks/{number}":                                    {path: "/v1/deployment_tasks/1", seen: byAll},
	"GET /v1/deployment_tasks/{number}/release":                            {path: "/v1/deployment_tasks/2/release", seen: byAll},
	"GET /v1/service_instances/{guid}/backups":                             {path: "/v1/service_instances/db-1/backups", seen: bySpace, row: "backup-1"},
	"GET /v1/service_instances/{guid}/points":                              {path: "/v1/service_instances/db-1/points", seen: bySpace},
	"GET /v1/service_instances/{guid}/server":                              {path: "/v1/service_instances/db-1/server", seen: bySpace},
	"GET /v1/service_instances/{guid}/mails":                               {path: "/v1/service_instances/db-1/mails", seen: bySpace},
	"GET /v1/service_instances/{guid}/mails/{mail}":                        {path: "/v1/service_instances/db-1/mails/1", seen: bySpace},
	"GET /v1/service_backups/{guid}":                                       {path: "/v1/service_backups/backup-1", seen: bySpace},
	"GET /v1/service_backups/{guid}/download":                              {path: "/v1/service_backups/backup-1/download", seen: bySpace},
	"GET /v1/ssh_keys":                                                     {path: "/v1/ssh_keys", seen: byWide, row: "ssh-key-1"},
	"GET /v1/ssh_keys/{guid}":                                              {path: "/v1/ssh_keys/ssh-key-1", seen: byWide},
	"GET /v1/disks":                                                        {path: "/v1/disks", seen: byAll},
	"GET /v3/isolation_segments":                                           {path: "/v3/isolation_segments", seen: byOrg, row: "iso-1"},
	"GET /v3/isolation_segments/{guid}":                                    {path: "/v3/isolation_segments/iso-1", seen: byOrg},
	"GET /v3/isolation_segments/{guid}/organizations":                      {path: "/v3/isolation_segments/iso-1/organizations", seen: byOrg, row: "org-1"},
	"GET /v3/isolation_segments/{guid}/relationships/organizations":        {path: "/v3/isolation_segments/iso-1/relationships/organizations", seen: byOrg},
	"GET /v3/isolation_segments/{guid}/relationships/spaces":               {path: "/v3/isolation_segments/iso-1/relationships/spaces", seen: byOrg},
	"GET /v3/jobs/{guid}":                                                  {path: "/v3/jobs/job-1", seen: byAll},
	"GET /routing/v1/router_groups":                                        {path: "/routing/v1/router_groups", seen: byAll},
	"GET /networking/v1/external/policies":                                 {path: "/networking/v1/external/policies", seen: authz.SpaceDeveloper, row: "app-1"},
	"GET /v3/organizations":                                                {path: "/v3/organizations", seen: byOrg, row: "org-1"},
	"GET /v3/organizations/{guid}":                                         {path: "/v3/organizations/org-1", seen: byOrg},
	"GET /v3/organizations/{guid}/domains":                                 {path: "/v3/organizations/org-1/domains", seen: byOrg, row: "domain-1"},
	"GET /v3/organizations/{guid}/domains/default":                         {path: "/v3/organizations/org-1/domains/default", seen: byOrg},
	"GET /v3/organizations/{guid}/relationships/default_isolation_segment": {path: "/v3/organizations/org-1/relationships/default_isolation_segment", seen: byOrg},
	"GET /v3/organizations/{guid}/usage_summary":                           {path: "/v3/organizations/org-1/usage_summary", seen: byOrg},
	"GET /v3/organizations/{guid}/users":                                   {path: "/v3/organizations/org-1/users", seen: byOrg, row: "user-org_user"},
	"GET /v3/organization_quotas":                                          {path: "/v3/organization_quotas", seen: byAll, row: "quota-2"},
	"GET /v3/organization_quotas/{guid}":                                   {path: "/v3/organization_quotas/quota-2", seen: byAll},
	"GET /v3/packages":                                                     {path: "/v3/packages", seen: bySpace, row: "package-1"},
	"GET /v3/packages/{guid}":                                              {path: "/v3/packages/package-1", seen: bySpace},
	"GET /v3/packages/{guid}/download":                                     {path: "/v3/packages/package-1/download", seen: bySpace},
	"GET /v3/packages/{guid}/droplets":                                     {path: "/v3/packages/package-1/droplets", seen: bySpace, row: "droplet-1"},
	"GET /v3/placement_pools":                                              {path: "/v3/placement_pools", seen: byAll, row: "pool-1"},
	"GET /v3/placement_pools/{guid}":                                       {path: "/v3/placement_pools/pool-1", seen: byAll},
	"GET /v3/processes":                                                    {path: "/v3/processes", seen: bySpace, row: "app-1"},
	"GET /v3/processes/{guid}":                                             {path: "/v3/processes/app-1", seen: bySpace},
	"GET /v3/processes/{guid}/stats":                                       {path: "/v3/processes/app-1/stats", seen: bySpace},
	"GET /v3/processes/{guid}/process_instances":                           {path: "/v3/processes/app-1/process_instances", seen: bySpace},
	"GET /v3/processes/{guid}/sidecars":                                    {path: "/v3/processes/app-1/sidecars", seen: bySpace, row: "sidecar-1"},
	"GET /v3/revisions/{guid}":                                             {path: "/v3/revisions/revision-1", seen: bySpace},
	"GET /v3/revisions/{guid}/environment_variables":                       {path: "/v3/revisions/revision-1/environment_variables", seen: bySpace},
	"GET /v3/roles":                                                        {path: "/v3/roles", seen: bySpace, row: "role-space_auditor"},
	"GET /v3/roles/{guid}":                                                 {path: "/v3/roles/role-space_auditor", seen: bySpace},
	"GET /v3/route_policies":                                               {path: "/v3/route_policies", seen: byRoute, row: "policy-1"},
	"GET /v3/route_policies/{guid}":                                        {path: "/v3/route_policies/policy-1", seen: byRoute},
	"GET /v3/routes":                                                       {path: "/v3/routes", seen: byRoute, row: "route-1"},
	"GET /v3/routes/{guid}":                                                {path: "/v3/routes/route-1", seen: byRoute},
	"GET /v3/routes/{guid}/destinations":                                   {path: "/v3/routes/route-1/destinations", seen: byRoute},
	"GET /v3/routes/{guid}/relationships/shared_spaces":                    {path: "/v3/routes/route-1/relationships/shared_spaces", seen: byRoute},
	"GET /v3/security_groups":                                              {path: "/v3/security_groups", seen: bySpace, row: "group-1"},
	"GET /v3/security_groups/{guid}":                                       {path: "/v3/security_groups/group-1", seen: bySpace},
	"GET /v3/service_brokers":                                              {path: "/v3/service_brokers", seen: byBroker, row: "broker-1"},
	"GET /v3/service_brokers/{guid}":                                       {path: "/v3/service_brokers/broker-1", seen: byBroker},
	"GET /v3/service_credential_bindings":                                  {path: "/v3/service_credential_bindings", seen: bySpace, row: "binding-1"},
	"GET /v3/service_credential_bindings/{guid}":                           {path: "/v3/service_credential_bindings/binding-1", seen: bySpace},
	"GET /v3/service_credential_bindings/{guid}/details":                   {path: "/v3/service_credential_bindings/binding-1/details", seen: bySpace, refused: "404"}, // CC hides it from who may not read secrets
	"GET /v3/service_credential_bindings/{guid}/parameters":                {path: "/v3/service_credential_bindings/binding-1/parameters", seen: bySpace, says: 400},   // CC tells whoever sees the binding that this one has none
	"GET /v3/service_instances":                                            {path: "/v3/service_instances", seen: bySpace, row: "ups-1"},
	"GET /v3/service_instances/{guid}":                                     {path: "/v3/service_instances/ups-1", seen: bySpace},
	"GET /v3/service_instances/{guid}/credentials":                         {path: "/v3/service_instances/ups-1/credentials", seen: bySpace},
	"GET /v3/service_instances/{guid}/parameters":                          {path: "/v3/service_instances/db-1/parameters", seen: bySpace},
	"GET /v3/service_instances/{guid}/permissions":                         {path: "/v3/service_instances/ups-1/permissions", seen: byAll},
	"GET /v3/service_instances/{guid}/relationships/shared_spaces":         {path: "/v3/service_instances/db-2/relationships/shared_spaces", seen: bySpace},
	"GET /v3/service_instances/{guid}/relationships/shared_spaces/usage_summary": {path: "/v3/service_instances/db-2/relationships/shared_spaces/usage_summary", seen: bySpace},
	"GET /v3/service_offerings":                             {path: "/v3/service_offerings", seen: byMembers, row: "offering-1"},
	"GET /v3/service_offerings/{guid}":                      {path: "/v3/service_offerings/offering-1", seen: byMembers},
	"GET /v3/service_plans":                                 {path: "/v3/service_plans", seen: byMembers, row: "plan-1"},
	"GET /v3/service_plans/{guid}":                          {path: "/v3/service_plans/plan-1", seen: byMembers},
	"GET /v3/service_plans/{guid}/visibility":               {path: "/v3/service_plans/plan-1/visibility", seen: byMembers},
	"GET /v3/service_route_bindings":                        {path: "/v3/service_route_bindings", seen: bySpace, row: "rb-1"},
	"GET /v3/service_route_bindings/{guid}":                 {path: "/v3/service_route_bindings/rb-1", seen: bySpace},
	"GET /v3/service_route_bindings/{guid}/parameters":      {path: "/v3/service_route_bindings/rb-1/parameters", seen: bySpace, says: 400}, // likewise, after it has asked for a developer
	"GET /v3/sidecars/{guid}":                               {path: "/v3/sidecars/sidecar-1", seen: bySpace},
	"GET /v3/space_quotas":                                  {path: "/v3/space_quotas", seen: bySpace, row: "space-quota-1"},
	"GET /v3/space_quotas/{guid}":                           {path: "/v3/space_quotas/space-quota-1", seen: bySpace},
	"GET /v3/spaces":                                        {path: "/v3/spaces", seen: bySpace, row: "space-1"},
	"GET /v3/spaces/{guid}":                                 {path: "/v3/spaces/space-1", seen: bySpace},
	"GET /v3/spaces/{guid}/features":                        {path: "/v3/spaces/space-1/features", seen: bySpace, row: "ssh"},
	"GET /v3/spaces/{guid}/features/{name}":                 {path: "/v3/spaces/space-1/features/ssh", seen: bySpace},
	"GET /v3/spaces/{guid}/relationships/isolation_segment": {path: "/v3/spaces/space-1/relationships/isolation_segment", seen: bySpace},
	"GET /v3/spaces/{guid}/running_security_groups":         {path: "/v3/spaces/space-1/running_security_groups", seen: bySpace, row: "group-1"},
	"GET /v3/spaces/{guid}/staging_security_groups":         {path: "/v3/spaces/space-1/staging_security_groups", seen: bySpace},
	"GET /v3/spaces/{guid}/usage_summary":                   {path: "/v3/spaces/space-1/usage_summary", seen: bySpace},
	"GET /v3/spaces/{guid}/users":                           {path: "/v3/spaces/space-1/users", seen: bySpace, row: "user-space_auditor"},
	"GET /v3/stacks":                                        {path: "/v3/stacks", seen: byAll, row: "stack-1"},
	"GET /v3/stacks/{guid}":                                 {path: "/v3/stacks/stack-1", seen: byAll},
	"GET /v3/stacks/{guid}/apps":                            {path: "/v3/stacks/stack-1/apps", seen: byAll},
	"GET /v3/tasks":                                         {path: "/v3/tasks", seen: bySpace, row: "task-1"},
	"GET /v3/tasks/{guid}":                                  {path: "/v3/tasks/task-1", seen: bySpace},
	"GET /v3/users":                                         {path: "/v3/users", seen: byOrg, row: "user-org_user"},
	"GET /v3/users/{guid}":                                  {path: "/v3/users/user-org_user", seen: byOrg},

	"GET /v2/info":                                   {path: "/v2/info", seen: byAll},
	"GET /v2/apps":                                   {path: "/v2/apps", seen: bySpace, row: "app-1"},
	"GET /v2/apps/{guid}":                            {path: "/v2/apps/app-1", seen: bySpace},
	"GET /v2/apps/{guid}/summary":                    {path: "/v2/apps/app-1/summary", seen: bySpace},
	"GET /v2/apps/{guid}/env":                        {path: "/v2/apps/app-1/env", seen: bySpace},
	"GET /v2/apps/{guid}/stats":                      {path: "/v2/apps/app-1/stats", seen: bySpace, says: 400},
	"GET /v2/apps/{guid}/instances":                  {path: "/v2/apps/app-1/instances", seen: bySpace, says: 400},
	"GET /v2/apps/{guid}/routes":                     {path: "/v2/apps/app-1/routes", seen: bySpace, row: "route-1"},
	"GET /v2/apps/{guid}/download":                   {path: "/v2/apps/app-1/download", seen: bySpace},
	"GET /v2/apps/{guid}/droplet/download":           {path: "/v2/apps/app-1/droplet/download", seen: bySpace},
	"GET /v2/config/feature_flags":                   {path: "/v2/config/feature_flags", seen: byAll, row: "diego_docker"},
	"GET /v2/config/feature_flags/{name}":            {path: "/v2/config/feature_flags/diego_docker", seen: byAll},
	"GET /v2/domains":                                {path: "/v2/domains", seen: byRoute, row: "domain-2"},
	"GET /v2/domains/{guid}":                         {path: "/v2/domains/domain-2", seen: byRoute},
	"GET /v2/organizations":                          {path: "/v2/organizations", seen: byOrg, row: "org-1"},
	"GET /v2/organizations/{guid}":                   {path: "/v2/organizations/org-1", seen: byOrg},
	"GET /v2/organizations/{guid}/spaces":            {path: "/v2/organizations/org-1/spaces", seen: byOrg},
	"GET /v2/private_domains":                        {path: "/v2/private_domains", seen: byRoute, row: "domain-2"},
	"GET /v2/private_domains/{guid}":                 {path: "/v2/private_domains/domain-2", seen: byRoute},
	"GET /v2/routes":                                 {path: "/v2/routes", seen: byRoute, row: "route-1"},
	"GET /v2/routes/{guid}":                          {path: "/v2/routes/route-1", seen: byRoute},
	"GET /v2/routes/{guid}/apps":                     {path: "/v2/routes/route-1/apps", seen: byRoute},
	"GET /v2/service_instances":                      {path: "/v2/service_instances", seen: bySpace, row: "db-1"},
	"GET /v2/service_instances/{guid}":               {path: "/v2/service_instances/ups-1", seen: bySpace},
	"GET /v2/shared_domains":                         {path: "/v2/shared_domains", seen: byAll, row: "domain-1"},
	"GET /v2/shared_domains/{guid}":                  {path: "/v2/shared_domains/domain-1", seen: byAll},
	"GET /v2/spaces":                                 {path: "/v2/spaces", seen: bySpace, row: "space-1"},
	"GET /v2/spaces/{guid}":                          {path: "/v2/spaces/space-1", seen: bySpace},
	"GET /v2/spaces/{guid}/apps":                     {path: "/v2/spaces/space-1/apps", seen: bySpace, row: "app-1"},
	"GET /v2/spaces/{guid}/routes":                   {path: "/v2/spaces/space-1/routes", seen: bySpace, row: "route-1"},
	"GET /v2/spaces/{guid}/service_instances":        {path: "/v2/spaces/space-1/service_instances", seen: bySpace, row: "db-1"},
	"GET /v2/spaces/{guid}/summary":                  {path: "/v2/spaces/space-1/summary", seen: bySpace},
	"GET /v2/stacks":                                 {path: "/v2/stacks", seen: byAll, row: "stack-1"},
	"GET /v2/stacks/{guid}":                          {path: "/v2/stacks/stack-1", seen: byAll},
	"GET /v2/user_provided_service_instances":        {path: "/v2/user_provided_service_instances", seen: bySpace, row: "ups-1"},
	"GET /v2/user_provided_service_instances/{guid}": {path: "/v2/user_provided_service_instances/ups-1", seen: bySpace},
}

// seedLooks adds the rows that looks need beside those of attempts.
func (w *world) seedLooks() {
	w.t.Helper()
	b, err := w.blobs.Put(w.t.Context(), strings.NewReader("a zip"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		p, err := store.Packages.Get(tx, "package-1")
		if err != nil {
			return err
		}
		d, err := store.Droplets.Get(tx, "droplet-1")
		if err != nil {
			return err
		}
		p.Digest, d.Digest = b.Digest, b.Digest
		for _, row := range []func() error{
			func() error { return store.Packages.Update(tx, p) },
			func() error { return store.Droplets.Update(tx, d) },
			func() error {
				return store.Events.Insert(tx, &cf.Event{Resource: guid("event-1"), Type: "audit.app.start", SpaceGUID: "space-1", OrgGUID: "org-1"})
			},
			func() error {
				return store.AppUsageEvents.Insert(tx, &cf.AppUsageEvent{Resource: guid("usage-1"), State: "STARTED"})
			},
			func() error {
				return store.ServiceUsageEvents.Insert(tx, &cf.ServiceUsageEvent{Resource: guid("usage-2"), State: "CREATED"})
			},
			func() error {
				return store.NetworkPolicies.Add(tx, cf.NetworkPolicy{Source: "app-1", Destination: "app-1", Protocol: "tcp", FirstPort: 8080, LastPort: 8080})
			},
			func() error {
				return store.BOSHTasks.Insert(tx, &cf.BOSHTask{DeploymentName: "nats", Kind: "export-release", State: cf.BOSHDone, Plan: []byte(`{"Exported": {}}`)})
			},
			func() error {
				return store.Jobs.Insert(tx, &cf.Job{Resource: guid("job-1"), Operation: "app.delete", State: cf.JobComplete})
			},
		} {
			if err := row(); err != nil {
				return err
			}
		}
		return nil
	})
}
