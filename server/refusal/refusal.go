// Package refusal answers requests with an error in Cloud Controller's form, for the
// handlers that are not package api's.
package refusal

import (
	"encoding/json"
	"net/http"
)

// Write answers with one error. Codes and titles are Cloud Controller's
// (CC: errors/v2.yml).
func Write(w http.ResponseWriter, status, code int, title, detail string) {
	type fault struct {
		Code   int    `json:"code"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string][]fault{"errors": {{code, title, detail}}}) // the client may be gone
}
