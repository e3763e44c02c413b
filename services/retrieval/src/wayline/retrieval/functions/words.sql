-- Text as a search compares it: without signs of any script, accents, or the spelling variants of Arabic; identifiers
-- also whole; Chinese, Japanese and the scripts of South-East Asia, which put no spaces between words, as pairs of
-- characters. Stored passages hold what these functions returned: a change of the words raises the default of
-- `documents.words_version` in a migration, and the service stores the passages of before anew.

-- The inside of a bracket expression: what ends a word beyond ASCII. All characters of the Unicode categories P, S, Z,
-- Cc and Cf, with superior and circled numbers; ranges run on over code points that stand for nothing.
CREATE OR REPLACE FUNCTION word_breaks() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN
    '\u0080-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb\u00bf\u00d7\u00f7\u02c2-\u02c5\u02d2-\u02df\u02e5-\u02eb'
    '\u02ed\u02ef-\u02ff\u0375\u037e\u0384-\u0385\u0387\u03f6\u0482\u055a-\u055f\u0589-\u058f\u05be\u05c0'
    '\u05c3\u05c6\u05f3-\u060f\u061b-\u061f\u066a-\u066d\u06d4\u06dd-\u06de\u06e9\u06fd-\u06fe\u0700-\u070f'
    '\u07f6-\u07f9\u07fe-\u07ff\u0830-\u083e\u085e\u0888\u0890-\u0891\u08e2\u0964-\u0965\u0970\u09f2-\u09f3'
    '\u09fa-\u09fb\u09fd\u0a76\u0af0-\u0af1\u0b70\u0bf3-\u0bfa\u0c77\u0c7f\u0c84\u0d4f\u0d79\u0df4\u0e3f'
    '\u0e4f\u0e5a-\u0e5b\u0f01-\u0f17\u0f1a-\u0f1f\u0f34\u0f36\u0f38\u0f3a-\u0f3d\u0f85\u0fbe-\u0fc5'
    '\u0fc7-\u0fda\u104a-\u104f\u109e-\u109f\u10fb\u1360-\u1368\u1390-\u1399\u1400\u166d-\u166e\u1680'
    '\u169b-\u169c\u16eb-\u16ed\u1735-\u1736\u17d4-\u17d6\u17d8-\u17db\u1800-\u180a\u180e\u1940-\u1945'
    '\u19de-\u19ff\u1a1e-\u1a1f\u1aa0-\u1aa6\u1aa8-\u1aad\u1b5a-\u1b6a\u1b74-\u1b7e\u1bfc-\u1bff\u1c3b-\u1c3f'
    '\u1c7e-\u1c7f\u1cc0-\u1cc7\u1cd3\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf\u1fed-\u1fef\u1ffd-\u2070'
    '\u2074-\u207e\u208a-\u208e\u20a0-\u20c0\u2100-\u2101\u2103-\u2106\u2108-\u2109\u2114\u2116-\u2118'
    '\u211e-\u2123\u2125\u2127\u2129\u212e\u213a-\u213b\u2140-\u2144\u214a-\u214d\u214f\u218a-\u2775'
    '\u2794-\u2bff\u2ce5-\u2cea\u2cf9-\u2cfc\u2cfe-\u2cff\u2d70\u2e00-\u2e2e\u2e30-\u3004\u3008-\u3020\u3030'
    '\u3036-\u3037\u303d-\u303f\u309b-\u309c\u30a0\u30fb\u3190-\u3191\u3196-\u319f\u31c0-\u31e3\u3200-\u321e'
    '\u322a-\u3247\u3250\u3260-\u327f\u328a-\u32b0\u32c0-\u33ff\u4dc0-\u4dff\ua490-\ua4c6\ua4fe-\ua4ff'
    '\ua60d-\ua60f\ua673\ua67e\ua6f2-\ua716\ua720-\ua721\ua789-\ua78a\ua828-\ua82b\ua836-\ua839\ua874-\ua877'
    '\ua8ce-\ua8cf\ua8f8-\ua8fa\ua8fc\ua92e-\ua92f\ua95f\ua9c1-\ua9cd\ua9de-\ua9df\uaa5c-\uaa5f\uaa77-\uaa79'
    '\uaade-\uaadf\uaaf0-\uaaf1\uab5b\uab6a-\uab6b\uabeb\ufb29\ufbb2-\ufbc2\ufd3e-\ufd4f\ufdcf\ufdfc-\ufdff'
    '\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0-\ufffd'
    '\U00010100-\U00010102\U00010137-\U0001013f\U00010179-\U00010189\U0001018c-\U000101fc\U0001039f\U000103d0'
    '\U0001056f\U00010857\U00010877-\U00010878\U0001091f\U0001093f\U00010a50-\U00010a58\U00010a7f\U00010ac8'
    '\U00010af0-\U00010af6\U00010b39-\U00010b3f\U00010b99-\U00010b9c\U00010ead\U00010f55-\U00010f59'
    '\U00010f86-\U00010f89\U00011047-\U0001104d\U000110bb-\U000110c1\U000110cd\U00011140-\U00011143'
    '\U00011174-\U00011175\U000111c5-\U000111c8\U000111cd\U000111db\U000111dd-\U000111df\U00011238-\U0001123d'
    '\U000112a9\U0001144b-\U0001144f\U0001145a-\U0001145d\U000114c6\U000115c1-\U000115d7\U00011641-\U00011643'
    '\U00011660-\U0001166c\U000116b9\U0001173c-\U0001173f\U0001183b\U00011944-\U00011946\U000119e2'
    '\U00011a3f-\U00011a46\U00011a9a-\U00011a9c\U00011a9e-\U00011aa2\U00011c41-\U00011c45'
    '\U00011c70-\U00011c71\U00011ef7-\U00011ef8\U00011fd5-\U00011fff\U00012470-\U00012474'
    '\U00012ff1-\U00012ff2\U00013430-\U00013438\U00016a6e-\U00016a6f\U00016af5\U00016b37-\U00016b3f'
    '\U00016b44-\U00016b45\U00016e97-\U00016e9a\U00016fe2\U0001bc9c\U0001bc9f-\U0001bca3\U0001cf50-\U0001d164'
    '\U0001d16a-\U0001d16c\U0001d173-\U0001d17a\U0001d183-\U0001d184\U0001d18c-\U0001d1a9'
    '\U0001d1ae-\U0001d241\U0001d245\U0001d300-\U0001d356\U0001d6c1\U0001d6db\U0001d6fb\U0001d715\U0001d735'
    '\U0001d74f\U0001d76f\U0001d789\U0001d7a9\U0001d7c3\U0001d800-\U0001d9ff\U0001da37-\U0001da3a'
    '\U0001da6d-\U0001da74\U0001da76-\U0001da83\U0001da85-\U0001da8b\U0001e14f\U0001e2ff\U0001e95e-\U0001e95f'
    '\U0001ecac\U0001ecb0\U0001ed2e\U0001eef0-\U0001f0f5\U0001f10d-\U0001fbca';

-- The inside of a bracket expression: scripts without spaces between words (Han, Kana, Thai, Lao, Myanmar, Khmer), and
-- Hangul, whose words carry their particles.
CREATE OR REPLACE FUNCTION unspaced_scripts() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN
    '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff'
    '\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff';

-- Characters that nobody sees, each of which would part a word in two: soft hyphens, zero-width spaces and joiners, marks
-- of direction, byte order marks, and the tatweel of Arabic, which only widens.
CREATE OR REPLACE FUNCTION unseen() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN U&'\00AD\034F\061C\180E\200B\200C\200D\200E\200F\202A\202B\202C\202D\202E\2060\2061\2062\2063\2064'
    '\2066\2067\2068\2069\206A\206B\206C\206D\206E\206F\FEFF\0640';

-- Text with signs of any script as spaces, apostrophes and hyphens as ASCII has them, and without what nobody sees. A word
-- that a soft hyphen breaks over two lines is one word. The breve of й is no accent: endings have it.
CREATE OR REPLACE FUNCTION words_apart(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN regexp_replace(
    regexp_replace(regexp_replace(regexp_replace(
        replace(replace(replace(replace(
            regexp_replace(body, '\u00ad[ \t]*\n[ \t]*', '', 'g'),
            U&'\0438\0306', 'й'), U&'\0418\0306', 'Й'), 'й', U&'\E139'), 'Й', U&'\E119'
        ),
        '[\u2019\u02bc]', '''', 'g'), '[\u2010-\u2014\u2212]', '-', 'g'),
        '[' || unseen() || ']+', '', 'g'
    ),
    '[' || word_breaks() || ']+', ' ', 'g'
);

-- One spelling of what is written in several ways: accents, widths, ligatures, capitals, harakat, forms of alef.
-- Vowel signs and nuktas of Indic scripts and the voicing marks of Kana stay: they make other words.
CREATE OR REPLACE FUNCTION one_spelling(apart text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT lower(CASE WHEN letters ~ '[\ue139\ue119øØłŁđĐħĦıς\u0671\u0649\u06cc\u06d2\u0629\u06a9]' THEN translate(
        letters,
        -- Alef wasla, alef maqsura, Farsi yeh, yeh barree, teh marbuta, keheh: as alef, yeh, heh and kaf.
        U&'\E139\E119øØłŁđĐħĦıς\0671\0649\06CC\06D2\0629\06A9',
        U&'\0439\0419oOlLdDhHiσ\0627\064A\064A\064A\0647\0643'
    ) ELSE letters END)
    FROM (
        SELECT replace(replace(replace(normalize(regexp_replace(
            normalize(apart, NFKD),
            '[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc'
            '\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08e1\u08e3-\u08ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff'
            '\ufe00-\ufe0f\ufe20-\ufe2f]+', '', 'g'
        ), NFKC), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe') AS letters
        -- Without the offset it would be worked out each time that it is named.
        OFFSET 0
    ) AS once
);

-- Quotation marks and dashes are often all that a text has beyond ASCII: then its letters are as they are.
CREATE OR REPLACE FUNCTION folded_letters(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT CASE WHEN octet_length(apart) = length(apart) THEN lower(apart) ELSE one_spelling(apart) END
    FROM (SELECT words_apart(body) AS apart OFFSET 0) AS once
);

-- Postgres puts this one in its caller's place, for it is not STRICT and holds no query: a call costs more than the work.
CREATE OR REPLACE FUNCTION folded(body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN octet_length(body) = length(body) THEN lower(body) ELSE folded_letters(body) END;

-- Identifiers as one word each: INV-2024-001, os.path.join, 3.11.4, a+b@example.com, retries=3, 50%, C++, C#, .NET, and
-- the parts of a path that are identifiers themselves. The letters ǀ, ǂ, ǃ and ǁ stand for their separators, +, # and %:
-- the full-text parser takes them for parts of a word.
-- Each part looks first whether there can be one, which is a tenth of the work: most texts have none.
CREATE OR REPLACE FUNCTION identifiers(folded text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN folded ~ '[a-z0-9\u00c0-\u058f\u0620-\u06ff](?:[-_./:@\\+%=]|::|->)[a-z0-9\u00c0-\u058f\u0620-\u06ff]|--[a-z0-9]|[a-z0-9][+#%]|\.[a-z]' THEN (
    -- One in front, too: a token that begins with a digit might be read as a number.
    SELECT string_agg('ǀ' || CASE WHEN length(whole) > 96 THEN md5(whole) ELSE whole END, ' ')
    FROM (
        SELECT regexp_replace(part, '[-_./:@\\>+%=]+', 'ǀ', 'g')
        FROM regexp_matches(
            folded,
            '(?:[a-z0-9\u00c0-\u058f\u0620-\u06ff]+(?:[-_./:@\\+%=]|::|->))+[a-z0-9\u00c0-\u058f\u0620-\u06ff]+',
            'g'
        ) AS joined, LATERAL (
            SELECT joined[1]
            UNION ALL
            SELECT found[1] FROM regexp_matches(
                joined[1], '(?:[a-z0-9\u00c0-\u058f\u0620-\u06ff]+[-_.])+[a-z0-9\u00c0-\u058f\u0620-\u06ff]+', 'g'
            ) AS found
            WHERE folded ~ '[/:@\\+%=]'
        ) AS of_joined (part)
        -- No abbreviation (e.g., p.m.), and no two words that a hyphen joins.
        WHERE part ~ '[0-9_:@\\+%=/>]|-.*-' OR part ~ '\.' AND part ~ '[^-./]{2}'
        UNION ALL
        SELECT regexp_replace(found[1], '-+', 'ǀ', 'g')
        FROM regexp_matches(folded, '(?:^|[\s("''`=])(--[a-z0-9][a-z0-9-]*)', 'g') AS found
        WHERE folded LIKE '%--%'
        UNION ALL
        SELECT translate(found[1], '+#%', 'ǂǃǁ')
        FROM regexp_matches(folded, '([a-z0-9]+(?:\+\+|#|%))(?![a-z0-9])', 'g') AS found
        WHERE folded ~ '[+#%]'
        UNION ALL
        SELECT replace(found[1], '.', 'ǀ')
        FROM regexp_matches(folded, '(?:^|[\s("''`])(\.[a-z][a-z0-9]+)', 'g') AS found
        WHERE folded ~ '(?:^|[\s("''`])\.[a-z]'
    ) AS identifier (whole)
) END;

-- Every two neighbouring characters of a script without spaces, and what can be a word by itself: each Han character, and
-- the first syllable of a Korean word of one or two.
CREATE OR REPLACE FUNCTION character_pairs(folded text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT string_agg(found[1], ' ')
    FROM (
        SELECT regexp_matches(folded, '[' || unspaced_scripts() || ']{2}', 'g')
        UNION ALL
        SELECT regexp_matches(
            regexp_replace(folded, '(^|[^' || unspaced_scripts() || '])[' || unspaced_scripts() || ']', '\1 ', 'g'),
            '[' || unspaced_scripts() || ']{2}', 'g'
        )
        UNION ALL
        SELECT regexp_matches(folded, '[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]', 'g')
        UNION ALL
        SELECT regexp_matches(folded, '(?<![\uac00-\ud7a3])([\uac00-\ud7a3])[\uac00-\ud7a3]?(?![\uac00-\ud7a3])', 'g')
    ) AS pair (found)
);

-- Text as the full-text parser should see it: it would take `os.path.join` and `a/b` for one word each. An apostrophe
-- stays. (By a pattern: `translate` looks at each of its signs for each character.)
CREATE OR REPLACE FUNCTION spaced_letters(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT regexp_replace(
        CASE WHEN unspaced IS NULL THEN folded
            ELSE regexp_replace(folded, '[' || unspaced_scripts() || ']+', ' ', 'g')
        END, '[!-&(-/:-@\[-`{-~\u2044]+', ' ', 'g'
    ) || coalesce(' ' || unspaced, '')
    -- Without the offset it would be folded each time that it is named.
    FROM (SELECT folded_letters(body) AS folded OFFSET 0) AS once,
        LATERAL (
            SELECT CASE WHEN folded ~ ('[' || unspaced_scripts() || ']') THEN character_pairs(folded) END OFFSET 0
        ) AS pairs (unspaced)
);

CREATE OR REPLACE FUNCTION spaced(body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN octet_length(body) = length(body) THEN regexp_replace(lower(body), '[!-&(-/:-@\[-`{-~]+', ' ', 'g')
    ELSE spaced_letters(body) END;

-- Emoji and other pictures, each as an identifier of its code point: the text's other signs part words and are in none.
CREATE OR REPLACE FUNCTION pictures(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN body ~ '[\u2600-\u27bf\U0001f300-\U0001faff]' THEN (
    SELECT string_agg('ǀ' || to_hex(ascii(found[1])), ' ')
    FROM regexp_matches(body, '[\u2600-\u27bf\U0001f300-\U0001f3fa\U0001f400-\U0001faff]', 'g') AS found
) END;

-- Names that are written in capitals and small letters: getUserName, HTTPServer; not mRNA, nor iPhone.
CREATE OR REPLACE FUNCTION compound_names(body text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 2
AS $$
    SELECT found[1]
    FROM regexp_matches(body, '\y([A-Za-z0-9]*(?:[a-z]{3}[A-Z]|[a-z]{2}[A-Z][a-z]{2}|[A-Z]{3}[a-z]{3})[A-Za-z0-9]*)\y', 'g') AS found
    WHERE body ~ '[a-z]{3}[A-Z]|[a-z]{2}[A-Z][a-z]{2}|[A-Z]{3}[a-z]{3}' AND length(found[1]) <= 96
$$;

-- A text's identifiers as the index knows them. They have no positions: their parts are counted already, so they make no
-- text longer, and each counts once in it.
CREATE OR REPLACE FUNCTION identifiers_of(body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN strip(to_tsvector('simple', concat_ws(
    ' ', identifiers(folded(body)), CASE WHEN octet_length(body) <> length(body) THEN pictures(body) END,
    CASE WHEN body ~ '[a-z]{3}[A-Z]|[a-z]{2}[A-Z][a-z]{2}|[A-Z]{3}[a-z]{3}' THEN
        lower((SELECT string_agg('ǀ' || name, ' ') FROM compound_names(body) AS name))
    END
)));

-- The words in those names. They have no positions: the name itself is a word of the text.
CREATE OR REPLACE FUNCTION parts_of_names(body text, language regconfig) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN body ~ '[a-z]{3}[A-Z]|[a-z]{2}[A-Z][a-z]{2}|[A-Z]{3}[a-z]{3}' THEN (
    SELECT strip(to_tsvector(language, coalesce(lower(string_agg(
        regexp_replace(regexp_replace(name, '([a-z0-9])([A-Z])', '\1 \2', 'g'), '([A-Z])([A-Z][a-z])', '\1 \2', 'g'), ' '
    )), '')))
    FROM compound_names(body) AS name
) ELSE '' END;

-- What tells a language: words that only its sentences have, and letters that only its words have.
CREATE OR REPLACE FUNCTION language_signs() RETURNS TABLE (language regconfig, signs text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 12
AS $$
    VALUES
        ('german'::regconfig, '(?:der|die|das|und|ist|nicht|ein|eine|einen|einer|eines|fur|für|mit|wird|werden|auf|zu|sich|auch|von|dem|den|wie|wo|warum|sind|ich|wir|sie|bei|nach|über|kann|haben|hat|wurde|oder|wenn|im|am|zum|zur|kein|keine)|ß'),
        ('french', '(?:le|les|des|une|et|est|dans|pour|pas|que|qui|sur|avec|sont|du|au|aux|ce|cette|ces|nous|vous|il|elle|ils|où|ou|comment|quel|quelle|quels|sans|mais|être|été|ont|leur|par|plus)|[çœ]'),
        ('spanish', '(?:el|los|las|una|unos|y|es|en|por|para|con|del|al|que|se|su|sus|como|cómo|qué|dónde|donde|está|este|esta|pero|más|son|fue|muy|cuando|cuándo|lo|cuál)|[ñ¿¡]'),
        ('italian', '(?:il|gli|della|delle|degli|dei|nel|nella|che|è|e|di|per|non|una|sono|con|come|dove|questo|questa|più|anche|alla|dal|del)'),
        ('portuguese', '(?:os|uma|um|não|para|com|são|está|do|da|dos|das|em|no|na|por|que|como|mais|onde|foi|ao|às|você|seu|sua)|[ãõ]'),
        ('dutch', '(?:het|een|van|zijn|niet|voor|met|wordt|worden|ook|naar|deze|dit|aan|bij|maar|hoe|waar|wat|dat|kan|en|op|te)'),
        ('swedish', '(?:och|är|inte|ett|för|som|till|av|på|med|den|det|hur|var|kan|från|har|efter)'),
        ('danish', '(?:og|ikke|er|til|af|på|med|det|den|hvordan|hvor|kan|fra|har|efter|bliver|som|en|et)'),
        ('finnish', '(?:ja|on|ei|että|se|ovat|kun|tai|mutta|mitä|miten|missä|myös|voi)'),
        ('hungarian', '(?:az|és|nem|egy|hogy|van|meg|ez|vagy|csak|hogyan|hol|mi|ki|is)|[őű]'),
        ('romanian', '(?:și|si|este|pentru|nu|care|cu|din|sunt|la|unde|cum|mai|ale|sau)|[ășț]'),
        ('turkish', '(?:ve|bir|için|bu|ile|değil|nasıl|nerede|olarak|daha|gibi|çok|mi|mı)|[ğı]'),
        ('indonesian', '(?:yang|dan|di|dengan|untuk|tidak|ini|itu|dari|pada|adalah|bagaimana|akan|ke)')
$$;

-- The language of a text in a script that has one; NULL: its script has many.
CREATE OR REPLACE FUNCTION language_of_script(body text) RETURNS regconfig
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN octet_length(body) = length(body) OR body !~ '[\u0370-\u0bff]{2}' THEN NULL
    WHEN body ~ '[\u0400-\u04ff]{3}' THEN 'russian'::regconfig
    WHEN body ~ '[\u0620-\u064a]{2}' THEN 'arabic'::regconfig
    WHEN body ~ '[\u0370-\u03ff]{3}' THEN 'greek'::regconfig
    WHEN body ~ '[\u0900-\u097f]{2}' THEN 'hindi'::regconfig
    WHEN body ~ '[\u0b80-\u0bff]{2}' THEN 'tamil'::regconfig
    WHEN body ~ '[\u0530-\u058f]{3}' THEN 'armenian'::regconfig
END;

-- The language that a text's first 600 characters tell by small words; NULL: nothing tells. English is asked first, since
-- most texts are; another one has to show two different signs, for a name or a piece of code may look like one.
CREATE OR REPLACE FUNCTION language_of(body text) RETURNS regconfig
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN coalesce(language_of_script(left(body, 600)), (
    SELECT CASE
        WHEN english * 5 >= words AND english > 1 THEN 'english'::regconfig
        ELSE (
            SELECT language
            FROM (
                SELECT 'english'::regconfig AS language, english AS found, 2 AS different
                UNION ALL
                SELECT language, found.signs, found.different
                FROM language_signs(), LATERAL (
                    SELECT count(*), count(DISTINCT sign)
                    FROM regexp_matches(
                        start, '\m(' || replace(signs, ')|', ')\M|') || CASE WHEN signs LIKE '%)' THEN '\M' ELSE '' END || ')', 'g'
                    ) AS told (sign)
                ) AS found (signs, different)
            ) AS told
            WHERE found > 1 AND different > 1 AND found * 8 >= words
            ORDER BY found DESC, language = 'english'::regconfig DESC, language
            LIMIT 1
        )
    END
    FROM lower(left(body, 600)) AS start,
        regexp_count(start, '\w+') AS words,
        regexp_count(
            start,
            '\m(?:the|of|and|is|are|was|were|to|in|it|that|this|for|with|not|be|by|from|which|how|what|where|why|when|does'
            '|do|an|a|you|your|can|has|have|on|as|at)\M'
        ) AS english
));

-- The stemmer of a language by its code of two letters; NULL: there is none.
CREATE OR REPLACE FUNCTION stemmer_of(language text) RETURNS regconfig
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE language
    WHEN 'ar' THEN 'arabic'::regconfig WHEN 'ca' THEN 'catalan' WHEN 'da' THEN 'danish' WHEN 'de' THEN 'german'
    WHEN 'el' THEN 'greek' WHEN 'en' THEN 'english' WHEN 'es' THEN 'spanish' WHEN 'eu' THEN 'basque'
    WHEN 'fi' THEN 'finnish' WHEN 'fr' THEN 'french' WHEN 'ga' THEN 'irish' WHEN 'hi' THEN 'hindi'
    WHEN 'hu' THEN 'hungarian' WHEN 'hy' THEN 'armenian' WHEN 'id' THEN 'indonesian' WHEN 'it' THEN 'italian'
    WHEN 'lt' THEN 'lithuanian' WHEN 'nb' THEN 'norwegian' WHEN 'ne' THEN 'nepali' WHEN 'nl' THEN 'dutch'
    WHEN 'nn' THEN 'norwegian' WHEN 'no' THEN 'norwegian' WHEN 'pt' THEN 'portuguese' WHEN 'ro' THEN 'romanian'
    WHEN 'ru' THEN 'russian' WHEN 'sr' THEN 'serbian' WHEN 'sv' THEN 'swedish' WHEN 'ta' THEN 'tamil'
    WHEN 'tr' THEN 'turkish' WHEN 'yi' THEN 'yiddish'
END;

-- The tenant whose rows a transaction writes, as a word that no text has: `~` ends words. It has no position, so it makes
-- no text longer.
CREATE OR REPLACE FUNCTION tenant_word() RETURNS tsvector
LANGUAGE sql STABLE PARALLEL SAFE
RETURN array_to_tsvector(ARRAY['~' || coalesce(current_setting('wayline.tenant', true), '')]);

-- A chunk's words, stemmed by its language, which it names, too: its tenant, the document's name (twice: measured, it says
-- more than a word of the text) as A, the headings above it as B, its text as D. The language is the document's, unless
-- the passage is in another script; where it is not known, the passage's own words tell.
CREATE OR REPLACE FUNCTION words_of(name text, headings text, body text, language text) RETURNS tsvector
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    -- The small vectors are put together first: each `||` copies both of its sides.
    SELECT setweight(to_tsvector(stemmer, spaced(name || ' ' || name)), 'A')
        || setweight(to_tsvector(stemmer, spaced(headings)), 'B')
        || to_tsvector(stemmer, spaced(body))
        || (
            identifiers_of(name || ' ' || headings || ' ' || body)
            || parts_of_names(name || ' ' || headings || ' ' || body, stemmer)
            || tenant_word()
            || array_to_tsvector(ARRAY['~~' || stemmer::text])
        )
    FROM coalesce(
        language_of_script(left(body, 600)), stemmer_of(language), language_of(body), language_of(name), 'english'::regconfig
    ) AS stemmer
);

CREATE OR REPLACE FUNCTION words_of(name text, headings text, body text) RETURNS tsvector
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN words_of(name, headings, body, NULL);

-- Text as it was before, for passages that are not stored anew yet.
CREATE OR REPLACE FUNCTION spaced_before(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(body, '!"#$%&()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 31));
