package bbs

import (
	"net/http"

	"cupola/server/exact"
)

// handler is the API: Diego's routes that clients other than its own parts
// use, the state of each cell as its rep shows it, and Locket. The rest of them,
// by which a cell tells what it does, are 404: cells are not clients here.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]http.Handler{
		"/v1/ping": rpc(s, s.ping),

		"/v1/domains/list":   rpc(s, s.listDomains),
		"/v1/domains/upsert": rpc(s, s.upsertDomain),

		"/v1/cells/list.r1": rpc(s, s.listCells),

		"/v1/actual_lrps/list":                  rpc(s, s.listActuals),
		"/v1/actual_lrps/list_by_process_guids": rpc(s, s.listActualsByGUIDs),
		"/v1/actual_lrps/retire":                rpc(s, s.retireActual),

		"/v1/actual_lrp_groups/list":                          rpc(s, s.listGroups),
		"/v1/actual_lrp_groups/list_by_process_guid":          rpc(s, s.listGroupsByGUID),
		"/v1/actual_lrp_groups/get_by_process_guid_and_index": rpc(s, s.getGroup),

		"/v1/desired_lrp_scheduling_infos/list":                rpc(s, s.listSchedulingInfos),
		"/v1/desired_lrp_scheduling_infos/get_by_process_guid": rpc(s, s.getSchedulingInfo),
		"/v1/desired_lrp_routing_infos/list":                   rpc(s, s.listRoutingInfos),
		"/v1/desired_lrps/list.r3":                             rpc(s, s.listDesired),
		"/v1/desired_lrps/list.r2":                             rpc(s, s.listDesired2),
		"/v1/desired_lrps/get_by_process_guid.r3":              rpc(s, s.getDesired),
		"/v1/desired_lrps/get_by_process_guid.r2":              rpc(s, s.getDesired2),
		"/v1/desired_lrp/desire.r2":                            rpc(s, s.desire),
		"/v1/desired_lrp/update":                               rpc(s, s.updateDesired),
		"/v1/desired_lrp/remove":                               rpc(s, s.removeDesired),

		"/v1/tasks/list.r3":             rpc(s, s.listTasks),
		"/v1/tasks/list.r2":             rpc(s, s.listTasks2),
		"/v1/tasks/get_by_task_guid.r3": rpc(s, s.getTask),
		"/v1/tasks/get_by_task_guid.r2": rpc(s, s.getTask2),
		"/v1/tasks/desire.r2":           rpc(s, s.desireTask),
		"/v1/tasks/cancel":              rpc(s, s.cancelTask),
		"/v1/tasks/resolving":           rpc(s, s.resolveTask),
		"/v1/tasks/delete":              rpc(s, s.deleteTask),

		"/v1/events/lrp_instances.r1": s.stream(streamInstances),
		"/v1/events/lrp_instances":    s.stream(streamInstances),
		"/v1/events/tasks.r1":         s.stream(streamTasks),
		"/v1/events/tasks":            s.stream(streamTasks),
	} {
		mux.Handle("POST "+path, h)
	}
	for _, path := range []string{"/v1/events.r1", "/v1/events"} {
		mux.Handle("GET "+path, s.stream(streamGroups))
	}
	mux.HandleFunc("GET /cells/{cell}/state", s.cellState)
	for name, h := range map[string]http.Handler{
		"Lock": grpc(s, s.lock), "Release": grpc(s, s.release), "Fetch": grpc(s, s.fetchLock), "FetchAll": grpc(s, s.fetchLocks),
	} {
		mux.Handle("POST /models.Locket/"+name, h)
	}
	return exact.Paths(mux, http.NotFoundHandler())
}
