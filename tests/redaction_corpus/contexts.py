"""Where credentials stand in real text: two halves, {s} the secret, {k} the name it is kept under.

`{K}` is the name in capitals, `{c}` in camel case, `{d}` with dashes, `{u}` a user, `{h}` a host.
"""

from __future__ import annotations

# A token that speaks for itself.
TOKENS_TUNING = (
    "{s}",
    "here you go: {s}",
    "I get a 401 with {s}, what is wrong?",
    'client = Client("{s}")',
    "export PROVIDER={s}\nmake deploy\n",
    '{{"role": "user", "content": "please use {s} for this"}}',
    "2026-03-01T10:00:00Z INFO  starting with credential {s} in region eu-1",
    "curl https://api.example.com/v1/models?auth={s}&limit=10",
    "| name | value |\n|---|---|\n| prod | {s} |\n",
    "<config><value>{s}</value></config>",
    "use `{s}` until Friday",
    "- {s}\n- next item\n",
    "Fehler: Zugriff mit «{s}» verweigert – bitte prüfen",
    "git remote add origin https://{u}:{s}@git.example.com/team/app.git",
    "const t = '{s}';\nfetch(url, {{ headers: {{ 'X-Auth': t }} }});",
    '"{{\\"value\\":\\"{s}\\"}}"',
    "diff --git a/.env b/.env\n+VALUE={s}\n",
    "({s})",
    "[{s}]",
    "it was {s}.",
)
TOKENS_HELD_OUT = (
    "My old one was {s}; the new one comes tomorrow.",
    (
        "Traceback (most recent call last):\n"
        "  File \"app.py\", line 3\nAuthError: bad credential '{s}'\n"
    ),
    "value: {s}\nregion: eu-central-1\n",
    "$ tool login --with {s}\nlogged in\n",
    'os.environ["PROVIDER"] = "{s}"',
    "docker run -e PROVIDER={s} -p 8080:80 app:latest",
    "X-Provider: {s}\r\nAccept: */*\r\n\r\n",
    "{{'headers': {{'x-provider': '{s}'}}, 'timeout': 3}}",
    "user> {s}\nassistant> Thanks, I will not store it.",
    "[default]\nprovider = {s}\noutput = json\n",
    "https://example.com/callback#{s}",
    "ok so 👉 {s} 👈 is what you asked for",
    "Run set PROVIDER={s}&& npm start",
    '<input type="hidden" value="{s}">',
    "INSERT INTO settings VALUES ('provider', '{s}');",
    "provider={s};region=eu",
    "old {s} new",
    "\t{s}\t",
    "the first was revoked:\n\n    {s}\n\nthe second works",
    "«{s}»,",
)

# A value that its name gives away.
NAMED_TUNING = (
    "{K}={s}\n",
    "export {K}={s}\n",
    '{K}="{s}"\n',
    "{k} = '{s}'\n",
    '{k}: "{s}"\n',
    "{k}: {s}\nport: 5432\n",
    '{{"{k}": "{s}", "port": 5432}}',
    '{{"{c}":"{s}"}}',
    'const {c} = "{s}";',
    'settings["{k}"] = "{s}"',
    "[auth]\nuser = {u}\n{k} = {s}\n",
    "tool --{d} {s} --verbose",
    "tool --{d}={s}",
    '"{{\\"{k}\\": \\"{s}\\"}}"',
    "connect(host='{h}', {k}='{s}', timeout=3)",
    "- name: {K}\n  value: {s}\n",
    "ENV {K} {s}\n",
    '{k}: str = "{s}"',
    "<{k}>{s}</{k}>",
    'setx {K} "{s}"',
    "2026-03-01 10:00:00 DEBUG loaded {k}={s} from the environment",
)
NAMED_HELD_OUT = (
    "# local only\nDEBUG=1\n{K}={s}\nLOG_LEVEL=info\n",
    "docker run -e {K}={s} -d postgres:16",
    "environment:\n  - {K}={s}\n  - TZ=UTC\n",
    'app.config["{K}"] = "{s}"',
    "os.environ['{K}'] = '{s}'",
    "  {k}: '{s}'  # rotate me\n",
    "let {c}: string = '{s}';",
    'final String {c} = "{s}";',
    "$env:{K} = '{s}'",
    '{k} := "{s}"',
    "kubectl create secret generic app --from-literal={d}={s}",
    "config.{c} = '{s}'\n",
    'variable "x" {{\n  {k} = "{s}"\n}}',
    "Server={h};User Id={u};{c}={s};Encrypt=true",
    "define('{K}', '{s}');",
    "{{'{k}': '{s}', 'user': '{u}'}}",
    "https://api.example.com/v1/items?page=2&{k}={s}&sort=asc",
    "{k} => '{s}',",
    "{K}={s} python manage.py migrate",
    '<add key="{c}" value="{s}" />',
    "ARG {K}={s}\n",
    "[2026-03-01T09:12:44] config: {k}: {s}, retries: 3",
)

# A password, as its own kind.
PASSWORDS_TUNING = (
    "postgresql://{u}:{s}@{h}:5432/app",
    "DATABASE_URL=mysql://{u}:{s}@{h}/shop\n",
    "redis://:{s}@{h}:6379/0",
    "mongodb+srv://{u}:{s}@{h}/?retryWrites=true",
    "curl -u {u}:{s} https://{h}/api",
    "mysql -u {u} -p{s} shop",
    "sshpass -p '{s}' ssh {u}@{h}",
    "jdbc:postgresql://{h}/app?user={u}&password={s}",
    "host={h} user={u} password={s} dbname=app",
    "Server={h};Uid={u};Pwd={s};",
    "username: {u}\npassword: {s}\n",
    "login: {u}\npass: {s}",
    "machine {h} login {u} password {s}",
    "ALTER USER {u} WITH PASSWORD '{s}';",
)
PASSWORDS_HELD_OUT = (
    "amqp://{u}:{s}@{h}:5672/vhost",
    "git clone https://{u}:{s}@{h}/repo.git",
    'create_engine("postgresql+psycopg://{u}:{s}@{h}/db")',
    "curl --user '{u}:{s}' https://{h}/",
    "mysqldump --user={u} --password={s} shop > out.sql",
    "PGPASSWORD={s} psql -h {h} -U {u}",
    "wget --http-user={u} --http-password={s} https://{h}/f",
    "CREATE USER {u} IDENTIFIED BY '{s}';",
    "smb://{u}:{s}@{h}/share",
    "Data Source={h};User ID={u};Password={s};Pooling=true",
    "echo '{s}' | sudo -S true  # password: {s}",
    "User: {u}\nPassword: {s}\nURL: https://{h}",
    "requests.get(url, auth=('{u}', '{s}'))",
    "redis-cli -h {h} -a {s} ping",
    "ftp://{u}:{s}@{h}/pub",
    "Username={u}\r\nPassword={s}\r\n",
)

# {b} is the user and password as HTTP's Basic scheme writes them, {s} a token, {j} a session id.
HEADERS_TUNING = (
    "Authorization: Bearer {s}",
    "authorization: bearer\t{s}\n",
    'curl -H "Authorization: Bearer {s}" https://api.example.com',
    "headers = {{'Authorization': f'Bearer {s}'}}",
    "Authorization: Basic {b}",
    "X-Api-Key: {s}",
    "Cookie: theme=dark; sessionid={j}; lang=en",
    "Set-Cookie: sid={j}; Path=/; HttpOnly",
    "Authorization: token {s}",
)
HEADERS_HELD_OUT = (
    '{{"headers": {{"Authorization": "Bearer {s}", "Accept": "*/*"}}}}',
    "> GET /v1 HTTP/1.1\n> Authorization: BEARER {s}\n> Accept: */*",
    'req.Header.Set("Authorization", "Bearer {s}")',
    "Proxy-Authorization: Basic {b}",
    "-H 'x-api-key: {s}' -d '{{}}'",
    "cookie: PHPSESSID={j}",
    "set-cookie: connect.sid={j}; Max-Age=3600; Secure",
    "Authorization: ApiKey {s}",
    "X-Auth-Token: {s}\nHost: example.com",
    "the request went out with bearer {s}",
)

CARDS_TUNING = (
    "card {s} exp 04/29",
    "pay with {s} please",
    '{{"number": "{s}"}}',
    "{s} 12/27 123",
    "cc_{s}",
)
CARDS_HELD_OUT = (
    "My Visa is {s}.",
    "card_number={s}&cvc=on-file",
    "charge {s}, thanks",
    "Use ({s}), valid until 04/29.",
    "credit card #{s}",
)
OTHER_CARDS_TUNING = ("card {s} exp 04/29", '{{"card_number": "{s}"}}')
OTHER_CARDS_HELD_OUT = ("My Maestro is {s}.", "card={s}&cvc=on-file", "the debit card: {s}")

IBANS_TUNING = ("my IBAN is {s}, thanks", "{s}", '{{"iban": "{s}"}}', "transfer to {s} today")
IBANS_HELD_OUT = ("Konto: {s}", "pay into {s}.", "iban={s}\n", "| rent | {s} |")

# Whole formats: the line around a value is what gives it away. {a} is an id of an access key,
# {x} thirty-two hexadecimal digits.
KEYS_TUNING = (
    "$ aws configure\nAWS Access Key ID [None]: {a}\nAWS Secret Access Key [None]: {s}\n",
    "Access key ID,Secret access key\n{a},{s}\n",
)
KEYS_HELD_OUT = (
    "AWS Access Key ID [****************ABCD]: {a}\nAWS Secret Access Key [****wxyz]: {s}",
    "User name,Password,Access key ID,Secret access key,Console login link\nann,,{a},{s},https://x",
)
SIDS_TUNING = ('client = Client("AC{x}", "{s}")',)
SIDS_HELD_OUT = ("const client = require('twilio')('AC{x}', '{s}');",)
WIFI_TUNING = (
    'network={{\n ssid="home"\n psk="{s}"\n}}',
    "WIFI:T:WPA;S:home;P:{s};;",
    '$p = ConvertTo-SecureString "{s}" -AsPlainText -Force',
    "connect to root:{s}@10.0.0.5 and look",
    "| host | user | password |\n|---|---|---|\n| web1 | {u} | {s} |\n| web2 | {u} | {s} |\n",
    "user,password\n{u},{s}\n",
)
WIFI_HELD_OUT = (
    "wpa_passphrase home\n  psk={s}\n",
    "WIFI:S:Café;T:WPA;H:true;P:{s};;",
    "ConvertTo-SecureString -String '{s}' -AsPlainText",
    "sftp admin:{s}@ftp.example.org",
    "user\tpassword\thost\n{u}\t{s}\t{h}\n",
    "Name;Passwort\n{u};{s}\n",
)
# Letters only, which the name alone gives away.
LETTERS_TUNING = (
    "PGPASSWORD={s} psql -h db",
    "tool --password {s} --verbose",
    "curl -H 'Authorization: Bearer {s}' https://example.com",
    "API_KEY={s}\n",
    '{{"apiKey": "{s}"}}',
)
LETTERS_HELD_OUT = (
    "MYSQL_PWD={s} mysqldump shop",
    "login --password={s} --host db",
    "Authorization: Bearer {s}",
    "export SERVICE_API_KEY={s}",
    '"client_secret": "{s}",',
)
