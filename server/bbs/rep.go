package bbs

import (
	"encoding/json"
	"net/http"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bbs/model"
	"cupola/store"
)

// repURL is where a cell's rep would be: its client asks for <url>/state.
func (s *Server) repURL(cellID string) string { return "https://" + s.Address() + "/cells/" + cellID }

// cellState shows what a cell has, as its rep does for the auctioneer and cfdot
// (rep: handlers/state_handler.go).
func (s *Server) cellState(w http.ResponseWriter, r *http.Request) {
	cells := s.Cells()
	i := slices.IndexFunc(cells, func(c lrp.Cell) bool { return c.ID == r.PathValue("cell") })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	containers := s.Containers(cells[i].ID)
	names, err := s.taskNames(r, containers)
	if err != nil {
		s.Log.ErrorContext(r.Context(), "state of a cell was not read", "cell", cells[i].ID, "err", err)
		http.Error(w, "the tasks were not read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(model.CellState(cells[i], i, s.repURL(cells[i].ID), containers, names)) // a client that left needs no answer
}

// taskNames are the GUIDs that clients gave the tasks whose containers have
// others.
func (s *Server) taskNames(r *http.Request, containers []lrp.ContainerStatus) (map[string]string, error) {
	var guids []string
	for _, c := range containers {
		if c.Kind == lrp.KindTask {
			guids = append(guids, c.GUID)
		}
	}
	names := map[string]string{}
	if len(guids) == 0 {
		return names, nil
	}
	return names, s.Store.Read(r.Context(), func(tx *store.Tx) error {
		tasks, err := store.BBSTasks.By(tx, "run_guids", guids...)
		for _, t := range tasks {
			names[t.RunGUID] = t.GUID
		}
		return err
	})
}
