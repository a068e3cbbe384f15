package api

import (
	"cupola/server/authz"
	"cupola/store"
)

const public = authz.Public

// routes is every route of the API, in the order of Cloud Controller's
// documentation. The middle column is who may use it: for a GET, who may see
// the thing; the scope of the token and the place of the thing are checked for
// all of them.
func (s *Server) routes() []route {
	const (
		anyone   = authz.Anyone
		admin    = authz.Admin
		wide     = authz.AdminReadOnly | authz.GlobalAuditor
		orgRead  = authz.OrgReader
		orgAdmin = authz.OrgManager
		read     = authz.SpaceReader
		secrets  = authz.SecretReader
		develop  = authz.SpaceDeveloper
		operate  = authz.SpaceOperator
		manage   = authz.OrgManager | authz.SpaceManager
	)
	return []route{
		{"GET /{$}", public, inTx(showRoot)},
		{"GET /v3", public, inTx(showV3)},
		{"GET /v3/info", public, inTx(showInfo)},
		{"GET /v3/info/usage_summary", wide, inTx(showUsage)},
		{"POST /v3/admin/actions/clear_buildpack_cache", admin, inTx(clearAllBuildCaches)},

		{"GET /v3/app_usage_events", anyone, listUsage(store.AppUsageEvents, viewAppUsage, "app")},
		{"GET /v3/app_usage_events/{guid}", anyone, show(store.AppUsageEvents, viewAppUsage)},
		{"POST /v3/app_usage_events/actions/destructively_purge_all_and_reseed", admin, reseedUsage((*store.Tx).ReseedAppUsage)},

		{"GET /v3/apps", anyone, listApps},
		{"POST /v3/apps", develop, inTx(createApp)},
		{"GET /v3/apps/{guid}", anyone, showIncluding(store.Apps, viewApp, includeOfApps, appIncludes)},
		{"PATCH /v3/apps/{guid}", develop, inTx(updateApp)},
		{"DELETE /v3/apps/{guid}", develop, inTx(deleteApp)},
		{"POST /v3/apps/{guid}/actions/clear_buildpack_cache", operate, inTx(clearBuildCache)},
		{"POST /v3/apps/{guid}/actions/start", operate, inTx(startApp)},
		{"POST /v3/apps/{guid}/actions/stop", operate, inTx(stopApp)},
		{"POST /v3/apps/{guid}/actions/restart", operate, inTx(restartApp)},
		{"GET /v3/apps/{guid}/builds", read, inTx(listAppBuilds)},
		{"GET /v3/apps/{guid}/droplets", read, inTx(listAppDroplets)},
		{"GET /v3/apps/{guid}/droplets/current", read, inTx(showCurrentDroplet)},
		{"GET /v3/apps/{guid}/env", secrets, inTx(showAppEnv)},
		{"GET /v3/apps/{guid}/environment_variables", secrets, inTx(showAppVars)},
		{"PATCH /v3/apps/{guid}/environment_variables", operate, inTx(updateAppVars)},
		{"GET /v3/apps/{guid}/manifest", commandReader, inTx(showManifest)},
		{"GET /v3/apps/{guid}/packages", read, inTx(listAppPackages)},
		{"GET /v3/apps/{guid}/features", read, inTx(listAppFeatures)},
		{"GET /v3/apps/{guid}/features/{name}", read, inTx(showAppFeature)},
		{"PATCH /v3/apps/{guid}/features/{name}", operate, inTx(updateAppFeature)},
		{"GET /v3/apps/{guid}/permissions", read, inTx(showAppPermissions)},
		{"GET /v3/apps/{guid}/processes", read, inTx(listAppProcesses)},
		{"GET /v3/apps/{guid}/processes/{type}", read, inTx(showProcess)},
		{"PATCH /v3/apps/{guid}/processes/{type}", operate, inTx(updateProcess)},
		{"GET /v3/apps/{guid}/processes/{type}/stats", read, showStats},
		{"GET /v3/apps/{guid}/processes/{type}/process_instances", read, inTx(showProcessInstances)},
		{"POST /v3/apps/{guid}/processes/{type}/actions/scale", operate, inTx(scaleProcess)},
		{"DELETE /v3/apps/{guid}/processes/{type}/instances/{index}", operate, inTx(deleteInstance)},
		{"GET /v3/apps/{guid}/relationships/current_droplet", read, inTx(currentDropletRelationship)},
		{"PATCH /v3/apps/{guid}/relationships/current_droplet", operate, inTx(setCurrentDroplet)},
		{"GET /v3/apps/{guid}/revisions", read, inTx(listRevisions)},
		{"GET /v3/apps/{guid}/revisions/deployed", read, inTx(listDeployedRevisions)},
		{"GET /v3/apps/{guid}/routes", read, inTx(listAppRoutes)},
		{"GET /v3/apps/{guid}/sidecars", read, inTx(listAppSidecars)},
		{"POST /v3/apps/{guid}/sidecars", develop, inTx(createSidecar)},
		{"GET /v3/apps/{guid}/ssh_enabled", read, inTx(showSSHEnabled)},
		{"GET /v3/apps/{guid}/tasks", read, inTx(listAppTasks)},
		{"POST /v3/apps/{guid}/tasks", develop, inTx(createTask)},

		{"GET /v3/audit_events", anyone, list(store.Events, viewEvent)},
		{"GET /v3/audit_events/{guid}", anyone, show(store.Events, viewEvent)},

		{"GET /v3/builds", anyone, list(store.Builds, viewBuild)},
		{"POST /v3/builds", operate, inTx(createBuild)},
		{"GET /v3/builds/{guid}", read, showBuild},
		{"PATCH /v3/builds/{guid}", develop, inTx(updateBuild)},

		{"GET /v3/buildpacks", anyone, listBuildpacks},
		{"POST /v3/buildpacks", admin, inTx(createBuildpack)},
		{"GET /v3/buildpacks/{guid}", anyone, show(store.Buildpacks, viewBuildpack)},
		{"PATCH /v3/buildpacks/{guid}", admin, inTx(updateBuildpack)},
		{"DELETE /v3/buildpacks/{guid}", admin, inTx(deleteBuildpack)},
		{"POST /v3/buildpacks/{guid}/upload", admin, uploadBuildpack},

		{"GET /v3/deployments", anyone, list(store.Deployments, viewDeployment)},
		{"POST /v3/deployments", operate, inTx(createDeployment)},
		{"GET /v3/deployments/{guid}", read, showDeployment},
		{"PATCH /v3/deployments/{guid}", develop, inTx(updateDeployment)},
		{"POST /v3/deployments/{guid}/actions/cancel", operate, inTx(cancelDeployment)},
		{"POST /v3/deployments/{guid}/actions/continue", operate, inTx(continueDeployment)},

		{"GET /v3/domains", anyone, list(store.Domains, viewDomain)},
		{"POST /v3/domains", orgAdmin, inTx(createDomain)},
		{"GET /v3/domains/{guid}", anyone, show(store.Domains, viewDomain)},
		{"PATCH /v3/domains/{guid}", orgAdmin, inTx(updateDomain)},
		{"DELETE /v3/domains/{guid}", orgAdmin, inTx(deleteDomain)},
		{"GET /v3/domains/{guid}/route_reservations", anyone, inTx(showReservation)},
		{"POST /v3/domains/{guid}/relationships/shared_organizations", orgAdmin, inTx(shareDomain)},
		{"DELETE /v3/domains/{guid}/relationships/shared_organizations/{org}", orgAdmin, inTx(unshareDomain)},

		{"GET /v3/droplets", anyone, list(store.Droplets, viewListedDroplet)},
		{"POST /v3/droplets", develop, inTx(createDroplet)},
		{"GET /v3/droplets/{guid}", read, inTx(showDroplet)},
		{"PATCH /v3/droplets/{guid}", develop, inTx(updateDroplet)},
		{"DELETE /v3/droplets/{guid}", develop, inTx(deleteDroplet)},
		{"GET /v3/droplets/{guid}/download", authz.SpaceReader &^ authz.SpaceSupporter, inTx(downloadDroplet)},
		{"POST /v3/droplets/{guid}/upload", develop, uploadDroplet},

		{"GET /v3/environment_variable_groups/{name}", anyone, inTx(showEnvGroup)},
		{"PATCH /v3/environment_variable_groups/{name}", admin, inTx(updateEnvGroup)},

		{"GET /v3/feature_flags", anyone, inTx(listFeatureFlags)},
		{"GET /v3/feature_flags/{name}", anyone, inTx(showFeatureFlag)},
		{"PATCH /v3/feature_flags/{name}", admin, inTx(updateFeatureFlag)},

		{"GET /v1/cells", wide, inTx(listCells)},
		{"GET /v1/tags", wide, inTx(listTags)},
		{"GET /v1/deployments", wide, inTx(listBOSHDeployments)},
		{"POST /v1/deployments", admin, inTx(deployBOSH)},
		{"POST /v1/deployments/render", admin, renderBOSH},
		{"GET /v1/deployments/{name}", authz.AdminReadOnly, inTx(showBOSHDeployment)}, // manifests hold secrets
		{"GET /v1/deployments/{name}/instances", wide, inTx(listBOSHInstances)},
		{"GET /v1/deployments/{name}/variables", wide, inTx(listBOSHVariables)},
		{"POST /v1/deployments/{name}/tasks", admin, inTx(askBOSHTask)},
		{"GET /v1/deployment_tasks", wide, inTx(listBOSHTasks)},
		{"GET /v1/deployment_tasks/{number}", wide, inTx(showBOSHTask)},
		{"DELETE /v1/deployment_tasks/{number}", admin, inTx(cancelBOSHTask)},
		{"POST /v1/droplets/{guid}/images", develop, packDroplet},
		{"GET /v1/droplets/{guid}/images/{image}/layers/{layer}", authz.SpaceReader &^ authz.SpaceSupporter, inTx(downloadPackedLayer)},
		{"GET /v1/disks", wide, inTx(listBOSHDisks)},
		{"DELETE /v1/disks/{guid}", admin, inTx(deleteBOSHDisk)},

		{"GET /v3/isolation_segments", anyone, list(store.IsolationSegments, viewSegment)},
		{"POST /v3/isolation_segments", admin, inTx(createSegment)},
		{"GET /v3/isolation_segments/{guid}", anyone, show(store.IsolationSegments, viewSegment)},
		{"PATCH /v3/isolation_segments/{guid}", admin, inTx(updateSegment)},
		{"DELETE /v3/isolation_segments/{guid}", admin, inTx(deleteSegment)},
		{"GET /v3/isolation_segments/{guid}/organizations", anyone, inTx(listSegmentOrgs)},
		{"GET /v3/isolation_segments/{guid}/relationships/organizations", anyone, inTx(showEntitled)},
		{"POST /v3/isolation_segments/{guid}/relationships/organizations", admin, inTx(entitleOrgs)},
		{"DELETE /v3/isolation_segments/{guid}/relationships/organizations/{org}", admin, inTx(revokeOrg)},
		{"GET /v3/isolation_segments/{guid}/relationships/spaces", anyone, inTx(showSegmentSpaces)},

		{"GET /v3/jobs/{guid}", anyone, showJob},

		{"GET /routing/v1/router_groups", anyone, inTx(listRouterGroups)},

		{"GET /networking/v1/external/policies", develop, inTx(listPolicies)},
		{"POST /networking/v1/external/policies", develop, inTx(createPolicies)},
		{"POST /networking/v1/external/policies/delete", develop, inTx(deletePolicies)},

		{"GET /v3/organizations", anyone, list(store.Orgs, viewOrg)},
		{"POST /v3/organizations", admin, inTx(createOrg)},
		{"GET /v3/organizations/{guid}", anyone, show(store.Orgs, viewOrg)},
		{"PATCH /v3/organizations/{guid}", orgAdmin, inTx(updateOrg)},
		{"DELETE /v3/organizations/{guid}", admin, inTx(deleteOrg)},
		{"GET /v3/organizations/{guid}/domains", orgRead, inTx(listOrgDomains)},
		{"GET /v3/organizations/{guid}/domains/default", orgRead, inTx(showDefaultDomain)},
		{"GET /v3/organizations/{guid}/relationships/default_isolation_segment", orgRead, inTx(showOrgSegment)},
		{"PATCH /v3/organizations/{guid}/relationships/default_isolation_segment", orgAdmin, inTx(setOrgSegment)},
		{"GET /v3/organizations/{guid}/usage_summary", orgRead, inTx(showOrgUsage)},
		{"GET /v3/organizations/{guid}/users", orgRead, inTx(listOrgUsers)},

		{"GET /v3/organization_quotas", anyone, list(store.OrgQuotas, viewOrgQuota)},
		{"POST /v3/organization_quotas", admin, inTx(createOrgQuota)},
		{"GET /v3/organization_quotas/{guid}", anyone, show(store.OrgQuotas, viewOrgQuota)},
		{"PATCH /v3/organization_quotas/{guid}", admin, inTx(updateOrgQuota)},
		{"DELETE /v3/organization_quotas/{guid}", admin, inTx(deleteOrgQuota)},
		{"POST /v3/organization_quotas/{guid}/relationships/organizations", admin, inTx(applyOrgQuota)},

		{"GET /v3/packages", anyone, list(store.Packages, viewPackage)},
		{"POST /v3/packages", develop, inTx(createPackage)},
		{"GET /v3/packages/{guid}", read, inTx(showPackage)},
		{"PATCH /v3/packages/{guid}", develop, inTx(updatePackage)},
		{"DELETE /v3/packages/{guid}", develop, inTx(deletePackage)},
		{"POST /v3/packages/{guid}/upload", develop, uploadPackage},
		{"GET /v3/packages/{guid}/download", commandReader, inTx(downloadPackage)},
		{"GET /v3/packages/{guid}/droplets", read, inTx(listPackageDroplets)},

		{"GET /v3/placement_pools", anyone, list(store.PlacementPools, viewPool)},
		{"POST /v3/placement_pools", admin, inTx(createPool)},
		{"GET /v3/placement_pools/{guid}", anyone, show(store.PlacementPools, viewPool)},
		{"PATCH /v3/placement_pools/{guid}", admin, inTx(updatePool)},
		{"DELETE /v3/placement_pools/{guid}", admin, inTx(deletePool)},
		{"POST /v3/placement_pools/{guid}/relationships/spaces", admin, inTx(addPoolSpaces)},
		{"DELETE /v3/placement_pools/{guid}/relationships/spaces/{space}", admin, inTx(removePoolSpace)},

		{"GET /v3/processes", anyone, listProcesses},
		{"GET /v3/processes/{guid}", read, inTx(showProcess)},
		{"PATCH /v3/processes/{guid}", operate, inTx(updateProcess)},
		{"GET /v3/processes/{guid}/stats", read, showStats},
		{"GET /v3/processes/{guid}/process_instances", read, inTx(showProcessInstances)},
		{"POST /v3/processes/{guid}/actions/scale", operate, inTx(scaleProcess)},
		{"DELETE /v3/processes/{guid}/instances/{index}", operate, inTx(deleteInstance)},
		{"GET /v3/processes/{guid}/sidecars", read, inTx(listProcessSidecars)},

		{"POST /v3/resource_matches", anyone, inTx(matchResources)},

		{"GET /v3/revisions/{guid}", read, inTx(showRevision)},
		{"PATCH /v3/revisions/{guid}", develop, inTx(updateRevision)},
		{"GET /v3/revisions/{guid}/environment_variables", commandReader, inTx(showRevisionVars)},

		{"GET /v3/roles", anyone, listRoles},
		{"POST /v3/roles", manage, inTx(createRole)},
		{"GET /v3/roles/{guid}", anyone, showIncluding(store.Roles, viewRole, includeOfRoles, roleIncludes)},
		{"DELETE /v3/roles/{guid}", manage, inTx(deleteRole)},

		{"GET /v3/route_policies", anyone, listRoutePolicies},
		{"POST /v3/route_policies", develop, inTx(createRoutePolicy)},
		{"GET /v3/route_policies/{guid}", anyone, showRoutePolicy},
		{"PATCH /v3/route_policies/{guid}", develop, inTx(updateRoutePolicy)},
		{"DELETE /v3/route_policies/{guid}", develop, inTx(deleteRoutePolicy)},

		{"GET /v3/routes", anyone, listRoutes},
		{"POST /v3/routes", operate, inTx(createRoute)},
		{"GET /v3/routes/{guid}", anyone, showIncluding(store.Routes, viewRoute, includeOfRoutes, routeIncludes)},
		{"PATCH /v3/routes/{guid}", operate, inTx(updateRoute)},
		{"DELETE /v3/routes/{guid}", operate, inTx(deleteRoute)},
		{"GET /v3/routes/{guid}/destinations", authz.RouteReader, inTx(listDestinations)},
		{"POST /v3/routes/{guid}/destinations", operate, inTx(addDestinations)},
		{"PATCH /v3/routes/{guid}/destinations", operate, inTx(replaceDestinations)},
		{"PATCH /v3/routes/{guid}/destinations/{destination}", operate, inTx(updateDestination)},
		{"DELETE /v3/routes/{guid}/destinations/{destination}", operate, inTx(deleteDestination)},
		{"GET /v3/routes/{guid}/relationships/shared_spaces", authz.RouteReader, inTx(showRouteShares)},
		{"POST /v3/routes/{guid}/relationships/shared_spaces", operate, inTx(shareRoute)},
		{"DELETE /v3/routes/{guid}/relationships/shared_spaces/{space}", operate, inTx(unshareRoute)},
		{"PATCH /v3/routes/{guid}/relationships/space", develop, inTx(moveRoute)},

		{"GET /v3/security_groups", anyone, list(store.SecurityGroups, viewSecurityGroup)},
		{"POST /v3/security_groups", admin, inTx(createSecurityGroup)},
		{"GET /v3/security_groups/{guid}", anyone, show(store.SecurityGroups, viewSecurityGroup)},
		{"PATCH /v3/security_groups/{guid}", admin, inTx(updateSecurityGroup)},
		{"DELETE /v3/security_groups/{guid}", admin, inTx(deleteSecurityGroup)},
		{"POST /v3/security_groups/{guid}/relationships/{kind}", manage, inTx(bindSecurityGroup)},
		{"DELETE /v3/security_groups/{guid}/relationships/{kind}/{space}", manage, inTx(unbindSecurityGroup)},

		{"GET /v3/service_brokers", anyone, list(store.ServiceBrokers, viewServiceBroker)},
		{"POST /v3/service_brokers", develop, inTx(createServiceBroker)},
		{"GET /v3/service_brokers/{guid}", anyone, show(store.ServiceBrokers, viewServiceBroker)},
		{"PATCH /v3/service_brokers/{guid}", develop, inTx(updateServiceBroker)},
		{"DELETE /v3/service_brokers/{guid}", develop, inTx(deleteServiceBroker)},

		{"GET /v3/service_credential_bindings", anyone, listServiceBindings},
		{"POST /v3/service_credential_bindings", operate, inTx(createServiceBinding)},
		{"GET /v3/service_credential_bindings/{guid}", anyone, showIncluding(store.ServiceBindings, viewServiceBinding, includeOfBindings, bindingIncludes)},
		{"PATCH /v3/service_credential_bindings/{guid}", develop, inTx(updateServiceBinding)},
		{"DELETE /v3/service_credential_bindings/{guid}", operate, inTx(deleteServiceBinding)},
		{"GET /v3/service_credential_bindings/{guid}/details", commandReader, recorded(showServiceBindingDetails)},
		{"GET /v3/service_credential_bindings/{guid}/parameters", anyone, askParameters(serviceBindingParameters)},

		{"GET /v3/service_instances", anyone, listServiceInstances},
		{"POST /v3/service_instances", develop, inTx(createServiceInstance)},
		{"GET /v3/service_instances/{guid}", anyone, inTx(showServiceInstance)},
		{"PATCH /v3/service_instances/{guid}", develop, inTx(updateServiceInstance)},
		{"DELETE /v3/service_instances/{guid}", develop, inTx(deleteServiceInstance)},
		{"GET /v3/service_instances/{guid}/credentials", commandReader, recorded(showServiceCredentials)},
		{"GET /v3/service_instances/{guid}/parameters", anyone, askParameters(serviceParameters)},
		{"GET /v3/service_instances/{guid}/permissions", anyone, inTx(showServicePermissions)},
		{"GET /v3/service_instances/{guid}/relationships/shared_spaces", anyone, inTx(showSharedSpaces)},
		{"POST /v3/service_instances/{guid}/relationships/shared_spaces", develop, inTx(shareServiceInstance)},
		{"GET /v3/service_instances/{guid}/relationships/shared_spaces/usage_summary", anyone, inTx(showSharesUse)},
		{"DELETE /v3/service_instances/{guid}/relationships/shared_spaces/{space}", develop, unshareServiceInstance},

		{"GET /v3/service_offerings", anyone | authz.Guest, inTx(listServiceOfferings)},
		{"GET /v3/service_offerings/{guid}", anyone | authz.Guest, inTx(showServiceOffering)},
		{"PATCH /v3/service_offerings/{guid}", develop, inTx(updateServiceOffering)},
		{"DELETE /v3/service_offerings/{guid}", develop, inTx(deleteServiceOffering)},

		{"GET /v3/service_plans", anyone | authz.Guest, inTx(listServicePlans)},
		{"GET /v3/service_plans/{guid}", anyone | authz.Guest, inTx(showServicePlan)},
		{"PATCH /v3/service_plans/{guid}", develop, inTx(updateServicePlan)},
		{"DELETE /v3/service_plans/{guid}", develop, inTx(deleteServicePlan)},
		{"GET /v3/service_plans/{guid}/visibility", anyone, inTx(showVisibility)},
		{"PATCH /v3/service_plans/{guid}/visibility", develop, inTx(updateVisibility)},
		{"POST /v3/service_plans/{guid}/visibility", develop, inTx(applyVisibility)},
		{"DELETE /v3/service_plans/{guid}/visibility/{org}", develop, inTx(deleteVisibility)},

		{"GET /v3/service_route_bindings", anyone, listRouteBindings},
		{"POST /v3/service_route_bindings", operate, inTx(createRouteBinding)},
		{"GET /v3/service_route_bindings/{guid}", anyone, showIncluding(store.RouteBindings, viewRouteBinding, includeOfRouteBindings, routeBindingIncludes)},
		{"PATCH /v3/service_route_bindings/{guid}", develop, inTx(updateRouteBinding)},
		{"DELETE /v3/service_route_bindings/{guid}", operate, inTx(deleteRouteBinding)},
		{"GET /v3/service_route_bindings/{guid}/parameters", develop, askParameters(routeBindingParameters)},

		{"GET /v3/service_usage_events", anyone, listUsage(store.ServiceUsageEvents, viewServiceUsage, "service")},
		{"GET /v3/service_usage_events/{guid}", anyone, show(store.ServiceUsageEvents, viewServiceUsage)},
		{"POST /v3/service_usage_events/actions/destructively_purge_all_and_reseed", admin, reseedUsage((*store.Tx).ReseedServiceUsage)},

		{"GET /v3/sidecars/{guid}", read, inTx(showSidecar)},
		{"PATCH /v3/sidecars/{guid}", develop, inTx(updateSidecar)},
		{"DELETE /v3/sidecars/{guid}", develop, inTx(deleteSidecar)},

		{"GET /v3/space_quotas", anyone, list(store.SpaceQuotas, viewSpaceQuota)},
		{"POST /v3/space_quotas", orgAdmin, inTx(createSpaceQuota)},
		{"GET /v3/space_quotas/{guid}", anyone, show(store.SpaceQuotas, viewSpaceQuota)},
		{"PATCH /v3/space_quotas/{guid}", orgAdmin, inTx(updateSpaceQuota)},
		{"DELETE /v3/space_quotas/{guid}", orgAdmin, inTx(deleteSpaceQuota)},
		{"POST /v3/space_quotas/{guid}/relationships/spaces", orgAdmin, inTx(applySpaceQuota)},
		{"DELETE /v3/space_quotas/{guid}/relationships/spaces/{space}", orgAdmin, inTx(removeSpaceQuota)},

		{"GET /v3/spaces", anyone, listSpaces},
		{"POST /v3/spaces", orgAdmin, inTx(createSpace)},
		{"GET /v3/spaces/{guid}", anyone, showIncluding(store.Spaces, viewSpace, includeOfSpaces, spaceIncludes)},
		{"PATCH /v3/spaces/{guid}", manage, inTx(updateSpace)},
		{"DELETE /v3/spaces/{guid}", orgAdmin, inTx(deleteSpace)},
		{"GET /v3/spaces/{guid}/features", read, inTx(listSpaceFeatures)},
		{"GET /v3/spaces/{guid}/features/{name}", read, inTx(showSpaceFeature)},
		{"PATCH /v3/spaces/{guid}/features/{name}", manage, inTx(updateSpaceFeature)},
		{"GET /v3/spaces/{guid}/relationships/isolation_segment", read, inTx(showSpaceSegment)},
		{"PATCH /v3/spaces/{guid}/relationships/isolation_segment", orgAdmin, inTx(setSpaceSegment)},
		{"POST /v3/spaces/{guid}/actions/apply_manifest", develop, applyManifest},
		{"POST /v3/spaces/{guid}/manifest_diff", develop, inTx(diffManifest)},
		{"DELETE /v3/spaces/{guid}/routes", operate, inTx(deleteUnmappedRoutes)},
		{"GET /v3/spaces/{guid}/running_security_groups", read, inTx(listRunningGroups)},
		{"GET /v3/spaces/{guid}/staging_security_groups", read, inTx(listStagingGroups)},
		{"GET /v3/spaces/{guid}/usage_summary", read, inTx(showSpaceUsage)},
		{"GET /v3/spaces/{guid}/users", read, inTx(listSpaceUsers)},

		{"GET /v3/stacks", anyone, list(store.Stacks, viewStack)},
		{"POST /v3/stacks", admin, inTx(createStack)},
		{"GET /v3/stacks/{guid}", anyone, show(store.Stacks, viewStack)},
		{"PATCH /v3/stacks/{guid}", admin, inTx(updateStack)},
		{"DELETE /v3/stacks/{guid}", admin, inTx(deleteStack)},
		{"GET /v3/stacks/{guid}/apps", anyone, inTx(listStackApps)},

		{"GET /v3/tasks", anyone, list(store.Tasks, viewListedTask)},
		{"GET /v3/tasks/{guid}", read, showTask},
		{"PATCH /v3/tasks/{guid}", develop, inTx(updateTask)},
		{"PUT /v3/tasks/{guid}/cancel", operate, inTx(cancelTask)},
		{"POST /v3/tasks/{guid}/actions/cancel", operate, inTx(cancelTask)},

		{"GET /v3/users", anyone, listUsers},
		{"POST /v3/users", admin, inTx(createUser)},
		{"GET /v3/users/{guid}", anyone, show(store.Users, viewUser)},
		{"PATCH /v3/users/{guid}", admin, inTx(updateUser)},
		{"DELETE /v3/users/{guid}", admin, inTx(deleteUser)},
	}
}
