package api

import (
	"cupola/server/authz"
	"cupola/server/control/apps"
	"cupola/server/control/deletion"
	"cupola/server/control/orgs"
	"cupola/server/control/policies"
	"cupola/server/control/routes"
	"cupola/server/control/services"
	"cupola/server/control/stacks"
	"cupola/store"
	"cupola/store/cf"
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

		{"GET /v3/app_usage_events", anyone, listUsage(store.AppUsageEvents.Table, viewAppUsage, "app")},
		{"GET /v3/app_usage_events/{guid}", anyone, show(store.AppUsageEvents.Table, viewAppUsage)},
		{"POST /v3/app_usage_events/actions/destructively_purge_all_and_reseed", admin, reseedUsage(store.AppUsageEvents.Reseed)},

		{"GET /v3/apps", anyone, listApps},
		{"POST /v3/apps", develop, inTx(create(apps.Create, viewApp))},
		{"GET /v3/apps/{guid}", anyone, showIncluding(store.Apps, viewApp, includeOfApps, appIncludes)},
		{"PATCH /v3/apps/{guid}", develop, inTx(update(findApp, apps.Update, viewApp))},
		{"DELETE /v3/apps/{guid}", develop, inTx(deletes(findApp, deletion.App, "apps"))},
		{"POST /v3/apps/{guid}/actions/clear_buildpack_cache", operate, inTx(clearBuildCache)},
		{"POST /v3/apps/{guid}/actions/start", operate, inTx(act(findApp, apps.Start, viewApp))},
		{"POST /v3/apps/{guid}/actions/stop", operate, inTx(act(findApp, apps.Stop, viewApp))},
		{"POST /v3/apps/{guid}/actions/restart", operate, inTx(act(findApp, apps.Restart, viewApp))},
		{"GET /v3/apps/{guid}/builds", read, inTx(listOf(findApp, store.Builds, viewBuild, "app_guids"))},
		{"GET /v3/apps/{guid}/droplets", read, inTx(listOf(findApp, store.Droplets, viewListedDroplet, "app_guids"))},
		{"GET /v3/apps/{guid}/droplets/current", read, inTx(showCurrentDroplet)},
		{"GET /v3/apps/{guid}/env", secrets, recorded(showAppEnv)},
		{"GET /v3/apps/{guid}/environment_variables", secrets, recorded(showAppVars)},
		{"PATCH /v3/apps/{guid}/environment_variables", operate, inTx(findUpdate(findApp, apps.ChangeEnv, viewVars))},
		{"GET /v3/apps/{guid}/manifest", commandReader, inTx(showManifest)},
		{"GET /v3/apps/{guid}/packages", read, inTx(listOf(findApp, store.Packages, viewPackage, "app_guids"))},
		{"GET /v3/apps/{guid}/features", read, inTx(listAppFeatures)},
		{"GET /v3/apps/{guid}/features/{name}", read, inTx(showAppFeature)},
		{"PATCH /v3/apps/{guid}/features/{name}", operate, inTx(updateAppFeature)},
		{"GET /v3/apps/{guid}/permissions", read, inTx(showAppPermissions)},
		{"GET /v3/apps/{guid}/processes", read, inTx(listOf(findApp, store.Processes, viewListedProcess, "app_guids", embedsInstances))},
		{"GET /v3/apps/{guid}/processes/{type}", read, inTx(showProcess)},
		{"PATCH /v3/apps/{guid}/processes/{type}", operate, inTx(updateProcess)},
		{"GET /v3/apps/{guid}/processes/{type}/stats", read, showStats},
		{"GET /v3/apps/{guid}/processes/{type}/process_instances", read, inTx(showProcessInstances)},
		{"POST /v3/apps/{guid}/processes/{type}/actions/scale", operate, inTx(scaleProcess)},
		{"DELETE /v3/apps/{guid}/processes/{type}/instances/{index}", operate, inTx(deleteInstance)},
		{"GET /v3/apps/{guid}/relationships/current_droplet", read, inTx(currentDropletRelationship)},
		{"PATCH /v3/apps/{guid}/relationships/current_droplet", operate, inTx(update(findApp, toGUID(apps.SetDroplet), viewCurrentDroplet))},
		{"GET /v3/apps/{guid}/revisions", read, inTx(listOf(findApp, store.Revisions, viewRevision, "app_guids"))},
		{"GET /v3/apps/{guid}/revisions/deployed", read, inTx(listDeployedRevisions)},
		{"GET /v3/apps/{guid}/routes", read, inTx(listOf(findApp, store.Routes, viewRoute, "app_guids"))},
		{"GET /v3/apps/{guid}/sidecars", read, inTx(listAppSidecars)},
		{"POST /v3/apps/{guid}/sidecars", develop, inTx(createSidecar)},
		{"GET /v3/apps/{guid}/ssh_enabled", read, inTx(showSSHEnabled)},
		{"GET /v3/apps/{guid}/tasks", read, inTx(listAppTasks)},
		{"POST /v3/apps/{guid}/tasks", develop, inTx(createTask)},

		{"GET /v3/audit_events", anyone, list(store.Events, viewEvent)},
		{"GET /v3/audit_events/{guid}", anyone, show(store.Events, viewEvent)},

		{"GET /v3/builds", anyone, list(store.Builds, viewBuild)},
		{"POST /v3/builds", operate, inTx(create(apps.Stage, viewBuild))},
		{"GET /v3/builds/{guid}", read, showBuild},
		{"PATCH /v3/builds/{guid}", develop, inTx(findUpdate(findBuild, labelBuild, viewBuild))},

		{"GET /v3/buildpacks", anyone, listBuildpacks},
		{"POST /v3/buildpacks", admin, inTx(byAdmin(create(stacks.CreateBuildpack, viewBuildpack)))},
		{"GET /v3/buildpacks/{guid}", anyone, show(store.Buildpacks, viewBuildpack)},
		{"PATCH /v3/buildpacks/{guid}", admin, inTx(findUpdate(findBuildpack, stacks.UpdateBuildpack, viewBuildpack))},
		{"DELETE /v3/buildpacks/{guid}", admin, inTx(remove(findBuildpack, stacks.DeleteBuildpack, "buildpack"))},
		{"POST /v3/buildpacks/{guid}/upload", admin, uploadBuildpack},

		{"GET /v3/deployments", anyone, list(store.Deployments.Table, viewDeployment)},
		{"POST /v3/deployments", operate, inTx(createDeployment)},
		{"GET /v3/deployments/{guid}", read, showDeployment},
		{"PATCH /v3/deployments/{guid}", develop, inTx(findUpdate(findDeployment, labelDeployment, viewDeployment))},
		{"POST /v3/deployments/{guid}/actions/cancel", operate, inTx(cancelDeployment)},
		{"POST /v3/deployments/{guid}/actions/continue", operate, inTx(continueDeployment)},

		{"GET /v3/domains", anyone, list(store.Domains, viewDomain)},
		{"POST /v3/domains", orgAdmin, inTx(create(routes.CreateDomain, viewDomain))},
		{"GET /v3/domains/{guid}", anyone, show(store.Domains, viewDomain)},
		{"PATCH /v3/domains/{guid}", orgAdmin, inTx(update(findDomain, label(store.Domains, metadataOfDomain), viewDomain))},
		{"DELETE /v3/domains/{guid}", orgAdmin, inTx(deletes(findDomain, deletion.Domain, "domains"))},
		{"GET /v3/domains/{guid}/route_reservations", anyone, inTx(showReservation)},
		{"POST /v3/domains/{guid}/relationships/shared_organizations", orgAdmin, inTx(update(findDomain, toGUIDs(routes.ShareDomain), viewDomainShares))},
		{"DELETE /v3/domains/{guid}/relationships/shared_organizations/{org}", orgAdmin, inTx(detach(findSharedDomain, routes.UnshareDomain, "org"))},

		{"GET /v3/droplets", anyone, list(store.Droplets, viewListedDroplet)},
		{"POST /v3/droplets", develop, inTx(createDroplet)},
		{"GET /v3/droplets/{guid}", read, inTx(showDroplet)},
		{"PATCH /v3/droplets/{guid}", develop, inTx(updateDroplet)},
		{"DELETE /v3/droplets/{guid}", develop, inTx(deleteDroplet)},
		{"GET /v3/droplets/{guid}/download", authz.SpaceReader &^ authz.SpaceSupporter, recorded(downloadDroplet)},
		{"POST /v3/droplets/{guid}/upload", develop, uploadDroplet},

		{"GET /v3/environment_variable_groups/{name}", anyone, inTx(showEnvGroup)},
		{"PATCH /v3/environment_variable_groups/{name}", admin, inTx(updateEnvGroup)},

		{"GET /v3/feature_flags", anyone, inTx(listFeatureFlags)},
		{"GET /v3/feature_flags/{name}", anyone, inTx(showFound(findFlag, viewFeatureFlag))},
		{"PATCH /v3/feature_flags/{name}", admin, inTx(findUpdate(findOwnFlag, setFlag, viewFeatureFlag))},

		{"GET /v1/cells", wide, inTx(listCells)},
		{"GET /v1/tags", wide, inTx(listTags)},
		{"GET /v1/deployments", wide, inTx(byAdmin(listBOSHDeployments))},
		{"POST /v1/deployments", admin, inTx(byAdmin(deployBOSH))},
		{"POST /v1/deployments/render", admin, renderBOSH},
		{"GET /v1/deployments/{name}", authz.AdminReadOnly, inTx(showBOSHDeployment)}, // manifests hold secrets
		{"GET /v1/deployments/{name}/instances", wide, inTx(listBOSHInstances)},
		{"GET /v1/deployments/{name}/variables", wide, inTx(listBOSHVariables)},
		{"POST /v1/deployments/{name}/tasks", admin, inTx(askBOSHTask)},
		{"GET /v1/deployment_tasks", wide, inTx(byAdmin(listBOSHTasks))},
		{"GET /v1/deployment_tasks/{number}", wide, inTx(showBOSHTask)},
		{"DELETE /v1/deployment_tasks/{number}", admin, inTx(cancelBOSHTask)},
		{"POST /v1/droplets/{guid}/images", develop, packDroplet},
		{"GET /v1/droplets/{guid}/images/{image}/layers/{layer}", authz.SpaceReader &^ authz.SpaceSupporter, inTx(downloadPackedLayer)},
		{"GET /v1/disks", wide, inTx(byAdmin(listBOSHDisks))},
		{"DELETE /v1/disks/{guid}", admin, inTx(byAdmin(deleteBOSHDisk))},

		{"GET /v3/isolation_segments", anyone, list(store.IsolationSegments, viewSegment)},
		{"POST /v3/isolation_segments", admin, inTx(byAdmin(create(orgs.CreateSegment, viewSegment)))},
		{"GET /v3/isolation_segments/{guid}", anyone, show(store.IsolationSegments, viewSegment)},
		{"PATCH /v3/isolation_segments/{guid}", admin, inTx(findUpdate(findOwnSegment, orgs.UpdateSegment, viewSegment))},
		{"DELETE /v3/isolation_segments/{guid}", admin, inTx(drop(findSegment, orgs.DeleteSegment))},
		{"GET /v3/isolation_segments/{guid}/organizations", anyone, inTx(listSegmentOrgs)},
		{"GET /v3/isolation_segments/{guid}/relationships/organizations", anyone, inTx(showFound(seeSegment, viewEntitled))},
		{"POST /v3/isolation_segments/{guid}/relationships/organizations", admin, inTx(findUpdate(findSegment, toGUIDs(orgs.Entitle), viewEntitled))},
		{"DELETE /v3/isolation_segments/{guid}/relationships/organizations/{org}", admin, inTx(detach(findSegment, orgs.Revoke, "org"))},
		{"GET /v3/isolation_segments/{guid}/relationships/spaces", anyone, inTx(showFound(seeSegment, viewSegmentSpaces))},

		{"GET /v3/jobs/{guid}", anyone, showJob},

		{"GET /routing/v1/router_groups", anyone, inTx(listRouterGroups)},
		{"POST /routing/v1/router_groups", admin, inTx(createRouterGroup)},
		{"PUT /routing/v1/router_groups/{guid}", admin, inTx(updateRouterGroup)},
		{"DELETE /routing/v1/router_groups/{guid}", admin, inTx(deleteRouterGroup)},

		{"GET /networking/v1/external/policies", develop, inTx(listPolicies)},
		{"POST /networking/v1/external/policies", develop, inTx(changePolicies(policies.Add))},
		{"POST /networking/v1/external/policies/delete", develop, inTx(changePolicies(policies.Remove))},

		{"GET /v3/organizations", anyone, list(store.Orgs, viewOrg)},
		{"POST /v3/organizations", admin, inTx(createOrg)},
		{"GET /v3/organizations/{guid}", anyone, show(store.Orgs, viewOrg)},
		{"PATCH /v3/organizations/{guid}", orgAdmin, inTx(findUpdate(findOrg, orgs.Update, viewOrg))},
		{"DELETE /v3/organizations/{guid}", admin, inTx(deletes(findOrg, deletion.Org, "organizations"))},
		{"GET /v3/organizations/{guid}/domains", orgRead, inTx(listFound(findOrg, store.Domains, viewDomain, "usable_by_organization_guids"))},
		{"GET /v3/organizations/{guid}/domains/default", orgRead, inTx(showDefaultDomain)},
		{"GET /v3/organizations/{guid}/relationships/default_isolation_segment", orgRead, inTx(showFound(findOrg, viewOrgSegment))},
		{"PATCH /v3/organizations/{guid}/relationships/default_isolation_segment", orgAdmin, inTx(update(findOrg, orgs.SetOrgSegment, viewOrgSegment))},
		{"GET /v3/organizations/{guid}/usage_summary", orgRead, inTx(showOrgUsage)},
		{"GET /v3/organizations/{guid}/users", orgRead, inTx(listHolders(findOrg, "all_organization_guids"))},

		{"GET /v3/organization_quotas", anyone, list(store.OrgQuotas, viewOrgQuota)},
		{"POST /v3/organization_quotas", admin, inTx(byAdmin(create(orgs.CreateQuota, viewOrgQuota)))},
		{"GET /v3/organization_quotas/{guid}", anyone, show(store.OrgQuotas, viewOrgQuota)},
		{"PATCH /v3/organization_quotas/{guid}", admin, inTx(byAdmin(update(findOrgQuota, orgs.UpdateQuota, viewOrgQuota)))},
		{"DELETE /v3/organization_quotas/{guid}", admin, inTx(byAdmin(remove(findOrgQuota, orgs.DeleteQuota, "organization_quota")))},
		{"POST /v3/organization_quotas/{guid}/relationships/organizations", admin, inTx(byAdmin(update(findOrgQuota, toGUIDs(orgs.ApplyQuota), viewQuotaOrgs)))},

		{"GET /v3/packages", anyone, list(store.Packages, viewPackage)},
		{"POST /v3/packages", develop, inTx(createPackage)},
		{"GET /v3/packages/{guid}", read, inTx(showFound(findPackage, viewPackage))},
		{"PATCH /v3/packages/{guid}", develop, inTx(update(findPackage, apps.UpdatePackage, viewPackage))},
		{"DELETE /v3/packages/{guid}", develop, inTx(deletePackage)},
		{"POST /v3/packages/{guid}/upload", develop, uploadPackage},
		{"GET /v3/packages/{guid}/download", commandReader, recorded(downloadPackage)},
		{"GET /v3/packages/{guid}/droplets", read, inTx(listOf(findPackage, store.Droplets, viewListedDroplet, "package_guids"))},

		{"GET /v3/placement_pools", anyone, list(store.PlacementPools, viewPool)},
		{"POST /v3/placement_pools", admin, inTx(byAdmin(create(orgs.CreatePool, viewPool)))},
		{"GET /v3/placement_pools/{guid}", anyone, show(store.PlacementPools, viewPool)},
		{"PATCH /v3/placement_pools/{guid}", admin, inTx(findUpdate(findPool, orgs.UpdatePool, viewPool))},
		{"DELETE /v3/placement_pools/{guid}", admin, inTx(remove(findPool, orgs.DeletePool, "placement_pool"))},
		{"POST /v3/placement_pools/{guid}/relationships/spaces", admin, inTx(findUpdate(findPool, toGUIDs(orgs.AssignPool), viewPoolSpaces))},
		{"DELETE /v3/placement_pools/{guid}/relationships/spaces/{space}", admin, inTx(detach(findPool, orgs.RemoveFromPool, "space"))},

		{"GET /v3/processes", anyone, listProcesses},
		{"GET /v3/processes/{guid}", read, inTx(showProcess)},
		{"PATCH /v3/processes/{guid}", operate, inTx(updateProcess)},
		{"GET /v3/processes/{guid}/stats", read, showStats},
		{"GET /v3/processes/{guid}/process_instances", read, inTx(showProcessInstances)},
		{"POST /v3/processes/{guid}/actions/scale", operate, inTx(scaleProcess)},
		{"DELETE /v3/processes/{guid}/instances/{index}", operate, inTx(deleteInstance)},
		{"GET /v3/processes/{guid}/sidecars", read, inTx(listProcessSidecars)},

		{"POST /v3/resource_matches", anyone, inTx(matchResources)},

		{"GET /v3/revisions/{guid}", read, inTx(showFound(findRevision, viewRevision))},
		{"PATCH /v3/revisions/{guid}", develop, inTx(update(findRevision, labelRevision, viewRevision))},
		{"GET /v3/revisions/{guid}/environment_variables", commandReader, recorded(showRevisionVars)},

		{"GET /v3/roles", anyone, listRoles},
		{"POST /v3/roles", manage, inTx(create(orgs.AddRole, viewRole))},
		{"GET /v3/roles/{guid}", anyone, showIncluding(store.Roles, viewRole, includeOfRoles, roleIncludes)},
		{"DELETE /v3/roles/{guid}", manage, inTx(remove(findRole, orgs.RemoveRole, "role"))},

		{"GET /v3/route_policies", anyone, listRoutePolicies},
		{"POST /v3/route_policies", develop, inTx(create(routes.CreatePolicy, viewRoutePolicy))},
		{"GET /v3/route_policies/{guid}", anyone, showIncluding(store.RoutePolicies, viewRoutePolicy, includeOfPolicies, policyIncludes)},
		{"PATCH /v3/route_policies/{guid}", develop, inTx(findUpdate(findRoutePolicy, routes.UpdatePolicy, viewRoutePolicy))},
		{"DELETE /v3/route_policies/{guid}", develop, inTx(drop(findRoutePolicy, routes.DeletePolicy))},

		{"GET /v3/routes", anyone, listRoutes},
		{"POST /v3/routes", operate, inTx(create(routes.Create, viewRoute))},
		{"GET /v3/routes/{guid}", anyone, showIncluding(store.Routes, viewRoute, includeOfRoutes, routeIncludes)},
		{"PATCH /v3/routes/{guid}", operate, inTx(updateRoute)},
		{"DELETE /v3/routes/{guid}", operate, inTx(remove(findRoute, routes.Remove, "route"))},
		{"GET /v3/routes/{guid}/destinations", authz.RouteReader, inTx(listDestinations)},
		{"POST /v3/routes/{guid}/destinations", operate, inTx(update(findRoute, mapRoute, viewRouteDestinations))},
		{"PATCH /v3/routes/{guid}/destinations", operate, inTx(update(findRoute, remapRoute, viewRouteDestinations))},
		{"PATCH /v3/routes/{guid}/destinations/{destination}", operate, inTx(updateDestination)},
		{"DELETE /v3/routes/{guid}/destinations/{destination}", operate, inTx(detach(findRoute, routes.Unmap, "destination"))},
		{"GET /v3/routes/{guid}/relationships/shared_spaces", authz.RouteReader, inTx(showFound(findSharedRoute, viewRouteShares))},
		{"POST /v3/routes/{guid}/relationships/shared_spaces", operate, inTx(findUpdate(findSharedRoute, toGUIDs(routes.Share), viewRouteShares))},
		{"DELETE /v3/routes/{guid}/relationships/shared_spaces/{space}", operate, inTx(detach(findSharedRoute, routes.Unshare, "space"))},
		{"PATCH /v3/routes/{guid}/relationships/space", develop, inTx(findUpdate(findSharedRoute, toGUID(routes.Move), viewMoved))},

		{"GET /v3/security_groups", anyone, list(store.SecurityGroups, viewSecurityGroup)},
		{"POST /v3/security_groups", admin, inTx(byAdmin(create(orgs.CreateSecurityGroup, viewSecurityGroup)))},
		{"GET /v3/security_groups/{guid}", anyone, show(store.SecurityGroups, viewSecurityGroup)},
		{"PATCH /v3/security_groups/{guid}", admin, inTx(findUpdate(findSecurityGroup, orgs.UpdateSecurityGroup, viewSecurityGroup))},
		{"DELETE /v3/security_groups/{guid}", admin, inTx(remove(findSecurityGroup, orgs.DeleteSecurityGroup, "security_group"))},
		{"POST /v3/security_groups/{guid}/relationships/{kind}", manage, inTx(bindSecurityGroup)},
		{"DELETE /v3/security_groups/{guid}/relationships/{kind}/{space}", manage, inTx(unbindSecurityGroup)},

		{"GET /v3/service_brokers", anyone, list(store.ServiceBrokers, viewServiceBroker)},
		{"POST /v3/service_brokers", develop, inTx(createServiceBroker)},
		{"GET /v3/service_brokers/{guid}", anyone, show(store.ServiceBrokers, viewServiceBroker)},
		{"PATCH /v3/service_brokers/{guid}", develop, inTx(updateServiceBroker)},
		{"DELETE /v3/service_brokers/{guid}", develop, inTx(remove(findBroker, services.RemoveBroker, "service_broker"))},

		{"GET /v3/service_credential_bindings", anyone, listServiceBindings},
		{"POST /v3/service_credential_bindings", operate, inTx(provide(services.CreateBinding, viewServiceBinding))},
		{"GET /v3/service_credential_bindings/{guid}", anyone, showIncluding(store.ServiceBindings.Table, viewServiceBinding, includeOfBindings, bindingIncludes)},
		{"PATCH /v3/service_credential_bindings/{guid}", develop, inTx(amend(byGUID(services.BindingToChange), direct(services.RelabelBinding), viewServiceBinding))},
		{"DELETE /v3/service_credential_bindings/{guid}", operate, inTx(withdraw(services.DeleteBinding))},
		{"GET /v3/service_credential_bindings/{guid}/details", commandReader, recorded(showServiceBindingDetails)},
		{"GET /v3/service_credential_bindings/{guid}/parameters", anyone, askParameters(services.BindingParameters)},

		{"GET /v3/service_instances", anyone, listServiceInstances},
		{"POST /v3/service_instances", develop, inTx(createServiceInstance)},
		{"GET /v3/service_instances/{guid}", anyone, inTx(showServiceInstance)},
		{"PATCH /v3/service_instances/{guid}", develop, inTx(updateServiceInstance)},
		{"DELETE /v3/service_instances/{guid}", develop, inTx(deleteServiceInstance)},
		{"GET /v3/service_instances/{guid}/credentials", commandReader, recorded(showServiceCredentials)},
		{"GET /v3/service_instances/{guid}/parameters", anyone, askParameters(services.InstanceParameters)},
		{"GET /v3/service_instances/{guid}/permissions", anyone, inTx(showServicePermissions)},
		{"GET /v3/service_instances/{guid}/relationships/shared_spaces", anyone, inTx(showSharedSpaces)},
		{"POST /v3/service_instances/{guid}/relationships/shared_spaces", develop, inTx(findUpdate(findToShare, toGUIDs(services.Share), viewSharedSpaces))},
		{"GET /v3/service_instances/{guid}/relationships/shared_spaces/usage_summary", anyone, inTx(showSharesUse)},
		{"DELETE /v3/service_instances/{guid}/relationships/shared_spaces/{space}", develop, unshareServiceInstance},

		{"GET /v3/service_offerings", anyone | authz.Guest, inTx(listServiceOfferings)},
		{"GET /v3/service_offerings/{guid}", anyone | authz.Guest, inTx(showServiceOffering)},
		{"PATCH /v3/service_offerings/{guid}", develop, inTx(findUpdate(findOffering, label(store.ServiceOfferings, metadataOfOffering), viewServiceOffering))},
		{"DELETE /v3/service_offerings/{guid}", develop, inTx(deleteServiceOffering)},

		{"GET /v3/service_plans", anyone | authz.Guest, inTx(listServicePlans)},
		{"GET /v3/service_plans/{guid}", anyone | authz.Guest, inTx(showServicePlan)},
		{"PATCH /v3/service_plans/{guid}", develop, inTx(updateServicePlan)},
		{"DELETE /v3/service_plans/{guid}", develop, inTx(drop(findPlan, services.RemovePlan))},
		{"GET /v3/service_plans/{guid}/visibility", anyone, inTx(showVisibility)},
		{"PATCH /v3/service_plans/{guid}/visibility", develop, inTx(updateVisibility)},
		{"POST /v3/service_plans/{guid}/visibility", develop, inTx(applyVisibility)},
		{"DELETE /v3/service_plans/{guid}/visibility/{org}", develop, inTx(detach(findPlan, services.HidePlan, "org"))},

		{"GET /v3/service_route_bindings", anyone, listRouteBindings},
		{"POST /v3/service_route_bindings", operate, inTx(provide(services.CreateRouteBinding, viewRouteBinding))},
		{"GET /v3/service_route_bindings/{guid}", anyone, showIncluding(store.RouteBindings, viewRouteBinding, includeOfRouteBindings, routeBindingIncludes)},
		{"PATCH /v3/service_route_bindings/{guid}", develop, inTx(amend(byGUID(services.RouteBindingToChange), direct(services.RelabelRouteBinding), viewRouteBinding))},
		{"DELETE /v3/service_route_bindings/{guid}", operate, inTx(withdraw(services.DeleteRouteBinding))},
		{"GET /v3/service_route_bindings/{guid}/parameters", develop, askParameters(services.RouteBindingParameters)},

		{"GET /v3/service_usage_events", anyone, listUsage(store.ServiceUsageEvents.Table, viewServiceUsage, "service")},
		{"GET /v3/service_usage_events/{guid}", anyone, show(store.ServiceUsageEvents.Table, viewServiceUsage)},
		{"POST /v3/service_usage_events/actions/destructively_purge_all_and_reseed", admin, reseedUsage(store.ServiceUsageEvents.Reseed)},

		{"GET /v3/sidecars/{guid}", read, inTx(showFound(findSidecar, viewSidecar))},
		{"PATCH /v3/sidecars/{guid}", develop, inTx(findUpdate(findSidecar, apps.ChangeSidecar, viewSidecar))},
		{"DELETE /v3/sidecars/{guid}", develop, inTx(drop(findSidecar, apps.DeleteSidecar))},

		{"GET /v3/space_quotas", anyone, list(store.SpaceQuotas, viewSpaceQuota)},
		{"POST /v3/space_quotas", orgAdmin, inTx(create(orgs.CreateSpaceQuota, viewSpaceQuota))},
		{"GET /v3/space_quotas/{guid}", anyone, show(store.SpaceQuotas, viewSpaceQuota)},
		{"PATCH /v3/space_quotas/{guid}", orgAdmin, inTx(findUpdate(findSpaceQuota, orgs.UpdateSpaceQuota, viewSpaceQuota))},
		{"DELETE /v3/space_quotas/{guid}", orgAdmin, inTx(remove(findSpaceQuota, orgs.DeleteSpaceQuota, "space_quota"))},
		{"POST /v3/space_quotas/{guid}/relationships/spaces", orgAdmin, inTx(findUpdate(findSpaceQuota, toGUIDs(orgs.ApplySpaceQuota), viewQuotaSpaces))},
		{"DELETE /v3/space_quotas/{guid}/relationships/spaces/{space}", orgAdmin, inTx(detach(findSpaceQuota, orgs.RemoveSpaceQuota, "space"))},

		{"GET /v3/spaces", anyone, listSpaces},
		{"POST /v3/spaces", orgAdmin, inTx(create(orgs.CreateSpace, viewSpace))},
		{"GET /v3/spaces/{guid}", anyone, showIncluding(store.Spaces, viewSpace, includeOfSpaces, spaceIncludes)},
		{"PATCH /v3/spaces/{guid}", manage, inTx(findUpdate(findSpace, orgs.UpdateSpace, viewSpace))},
		{"DELETE /v3/spaces/{guid}", orgAdmin, inTx(deletes(findSpace, deletion.Space, "spaces"))},
		{"GET /v3/spaces/{guid}/features", read, inTx(listSpaceFeatures)},
		{"GET /v3/spaces/{guid}/features/{name}", read, inTx(showFound(findSpaceFeature, viewSpaceSSH))},
		{"PATCH /v3/spaces/{guid}/features/{name}", manage, inTx(update(findSpaceFeature, setSpaceFeature, viewSpaceSSH))},
		{"GET /v3/spaces/{guid}/relationships/isolation_segment", read, inTx(showFound(findSpace, viewSpaceSegment))},
		{"PATCH /v3/spaces/{guid}/relationships/isolation_segment", orgAdmin, inTx(findUpdate(findSpace, orgs.SetSpaceSegment, viewSpaceSegment))},
		{"POST /v3/spaces/{guid}/actions/apply_manifest", develop, applyManifest},
		{"POST /v3/spaces/{guid}/manifest_diff", develop, inTx(diffManifest)},
		{"DELETE /v3/spaces/{guid}/routes", operate, inTx(deletes(findUnmapped, deletion.Unmapped, "spaces"))},
		{"GET /v3/spaces/{guid}/running_security_groups", read, inTx(listOf(findSpace, store.SecurityGroups, viewSecurityGroup, "running_in_space_guids"))},
		{"GET /v3/spaces/{guid}/staging_security_groups", read, inTx(listOf(findSpace, store.SecurityGroups, viewSecurityGroup, "staging_in_space_guids"))},
		{"GET /v3/spaces/{guid}/usage_summary", read, inTx(showSpaceUsage)},
		{"GET /v3/spaces/{guid}/users", read, inTx(listHolders(findSpace, "space_guids"))},

		{"GET /v3/stacks", anyone, list(store.Stacks, viewStack)},
		{"POST /v3/stacks", admin, inTx(byAdmin(create(stacks.Create, viewStack)))},
		{"GET /v3/stacks/{guid}", anyone, show(store.Stacks, viewStack)},
		{"PATCH /v3/stacks/{guid}", admin, inTx(findUpdate(findStack, stacks.Update, viewStack))},
		{"DELETE /v3/stacks/{guid}", admin, inTx(drop(findStack, stacks.Delete))},
		{"GET /v3/stacks/{guid}/apps", anyone, inTx(listStackApps)},

		{"GET /v3/tasks", anyone, listTasks},
		{"GET /v3/tasks/{guid}", read, showTask},
		{"PATCH /v3/tasks/{guid}", develop, inTx(update(findTask, labelTask, viewTask))},
		{"PUT /v3/tasks/{guid}/cancel", operate, inTx(cancelTask)},
		{"POST /v3/tasks/{guid}/actions/cancel", operate, inTx(cancelTask)},

		{"GET /v3/users", anyone, listUsers},
		{"POST /v3/users", admin, inTx(byAdmin(create(orgs.AddUser, viewUser)))},
		{"GET /v3/users/{guid}", anyone, show(store.Users, viewUser)},
		{"PATCH /v3/users/{guid}", admin, inTx(findUpdate(findUser, label(store.Users, func(u *cf.User) *cf.Metadata { return &u.Metadata }), viewUser))},
		{"DELETE /v3/users/{guid}", admin, inTx(remove(findUser, orgs.DeleteUser, "user"))},

		{"GET /v2/info", public, inTx(v2Info)},
		{"GET /v2/apps", anyone, v2Apps.list(nil)},
		{"GET /v2/apps/{guid}", anyone, v2Apps.show()},
		{"GET /v2/apps/{guid}/summary", read, inTx(v2Of(store.Apps, v2AppSummary))},
		{"GET /v2/apps/{guid}/env", secrets, recorded(v2Of(store.Apps, v2AppEnv))},
		{"GET /v2/apps/{guid}/stats", read, inTx(v2Of(store.Apps, v2AppStats))},
		{"GET /v2/apps/{guid}/instances", read, inTx(v2Of(store.Apps, v2AppInstances))},
		{"GET /v2/apps/{guid}/routes", anyone, v2AppRoutes},
		{"GET /v2/apps/{guid}/download", read, inTx(v2Of(store.Apps, v2AppPackage))},
		{"GET /v2/apps/{guid}/droplet/download", read, inTx(v2Of(store.Apps, v2AppDroplet))},
		{"GET /v2/config/feature_flags", anyone, inTx(v2ListFlags)},
		{"GET /v2/config/feature_flags/{name}", anyone, inTx(v2ShowFlag)},
		{"GET /v2/domains", anyone, v2Domains.list(nil)},
		{"GET /v2/domains/{guid}", anyone, v2Domains.show()},
		{"GET /v2/organizations", anyone, v2Orgs.list(nil)},
		{"GET /v2/organizations/{guid}", anyone, v2Orgs.show()},
		{"GET /v2/organizations/{guid}/spaces", anyone, v2Spaces.list(ofParent(store.Orgs, "organization_guids"))},
		{"GET /v2/private_domains", anyone, v2PrivateDomains.list(nil)},
		{"GET /v2/private_domains/{guid}", anyone, v2PrivateDomains.show()},
		{"GET /v2/routes", anyone, v2Routes.list(nil)},
		{"GET /v2/routes/{guid}", anyone, v2Routes.show()},
		{"GET /v2/routes/{guid}/apps", anyone, inTx(v2RouteApps)},
		{"GET /v2/service_instances", anyone, v2Managed.list(nil)},
		{"GET /v2/service_instances/{guid}", anyone, v2AnyService.show()},
		{"GET /v2/shared_domains", anyone, v2SharedDomains.list(nil)},
		{"GET /v2/shared_domains/{guid}", anyone, v2SharedDomains.show()},
		{"GET /v2/spaces", anyone, v2Spaces.list(nil)},
		{"GET /v2/spaces/{guid}", anyone, v2Spaces.show()},
		{"GET /v2/spaces/{guid}/apps", anyone, v2Apps.list(ofParent(store.Spaces, "space_guids"))},
		{"GET /v2/spaces/{guid}/routes", anyone, v2Routes.list(ofParent(store.Spaces, "space_guids"))},
		{"GET /v2/spaces/{guid}/service_instances", anyone, v2SpaceServices},
		{"GET /v2/spaces/{guid}/summary", read, inTx(v2Of(store.Spaces, v2SpaceSummary))},
		{"GET /v2/stacks", anyone, v2Stacks.list(nil)},
		{"GET /v2/stacks/{guid}", anyone, v2Stacks.show()},
		{"GET /v2/user_provided_service_instances", anyone, v2UserProvided.list(nil)},
		{"GET /v2/user_provided_service_instances/{guid}", anyone, v2UserProvided.show()},
	}
}
