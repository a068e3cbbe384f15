package main

import (
	"context"
	"database/sql"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// query executes statements, each on one line, and returns the rows of the last one.
func query(ctx context.Context, c credentials, request string) (string, error) {
	u, err := url.Parse(c.URI)
	if err != nil {
		return "", err
	}
	source := u.User.String() + "@tcp(" + u.Host + ")" + u.Path
	if c.TLS.Required {
		config, err := c.trust()
		if err == nil {
			err = mysql.RegisterTLSConfig("verified", config)
		}
		if err != nil {
			return "", err
		}
		source += "?tls=verified"
	}
	db, err := sql.Open("mysql", source)
	if err != nil {
		return "", err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	lines := strings.Split(strings.TrimSpace(request), "\n")
	for _, line := range lines[:len(lines)-1] {
		if _, err := conn.ExecContext(ctx, line); err != nil {
			return "", err
		}
	}
	rows, err := conn.QueryContext(ctx, lines[len(lines)-1])
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			return "", err
		}
		all = append(all, row)
	}
	return strings.Join(all, " "), rows.Err()
}
