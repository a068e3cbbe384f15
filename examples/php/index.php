<?php
header('Content-Type: text/plain; charset=utf-8');
$index = getenv('CF_INSTANCE_INDEX');
switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
    case '/':
        echo 'hello from hello-php, instance ', $index === false ? 0 : $index, ', PHP ', PHP_VERSION, ', ', mb_strtoupper('größe'), "\n";
        break;
    case '/health':
        echo "ok\n";
        break;
    default:
        http_response_code(404);
        echo "not found\n";
}
