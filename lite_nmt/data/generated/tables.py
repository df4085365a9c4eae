"""The words, as tables: one English word for one German word.

One-to-one on purpose. A teacher is always a Lehrer and a doctor always an Ärztin, so that neither
direction has to guess and a small model can be measured against a single reference.
An underscore stands for a space, "|" marks a separable prefix, "-" stands for "none".
"""

#   English singular, plural; gender; German singular, plural, genitive (feminine: never changes)
NOUNS = {
    "people": """
        teacher teachers m Lehrer Lehrer Lehrers
        doctor doctors f Ärztin Ärztinnen Ärztin
        neighbor neighbors m Nachbar Nachbarn Nachbarn
        student students f Studentin Studentinnen Studentin
        colleague colleagues m Kollege Kollegen Kollegen
        friend friends m Freund Freunde Freundes
        boss bosses f Chefin Chefinnen Chefin
        guest guests m Gast Gäste Gastes
        customer customers m Kunde Kunden Kunden
        man men m Mann Männer Mannes
        woman women f Frau Frauen Frau
        boy boys m Junge Jungen Jungen
        child children n Kind Kinder Kindes""",
    "family": """
        mother - f Mutter - Mutter
        father - m Vater - Vaters
        sister sisters f Schwester Schwestern Schwester
        brother brothers m Bruder Brüder Bruders
        daughter daughters f Tochter Töchter Tochter
        son sons m Sohn Söhne Sohnes
        aunt aunts f Tante Tanten Tante
        uncle uncles m Onkel Onkel Onkels
        grandmother - f Großmutter - Großmutter
        grandfather - m Großvater - Großvaters""",
    "animals": """
        dog dogs m Hund Hunde Hundes
        cat cats f Katze Katzen Katze
        horse horses n Pferd Pferde Pferdes
        bird birds m Vogel Vögel Vogels
        cow cows f Kuh Kühe Kuh""",
    "food": """
        apple apples m Apfel Äpfel Apfels
        banana bananas f Banane Bananen Banane
        cake cakes m Kuchen Kuchen Kuchens
        egg eggs n Ei Eier Eies
        roll rolls n Brötchen Brötchen Brötchens
        tomato tomatoes f Tomate Tomaten Tomate
        pizza pizzas f Pizza Pizzas Pizza
        soup soups f Suppe Suppen Suppe
        salad salads m Salat Salate Salats
        bread - n Brot - Brotes
        cheese - m Käse - Käses
        meat - n Fleisch - Fleisches
        rice - m Reis - Reises
        chocolate - f Schokolade - Schokolade""",
    "drinks": """
        water - n Wasser - Wassers
        coffee - m Kaffee - Kaffees
        tea - m Tee - Tees
        milk - f Milch - Milch
        juice - m Saft - Saftes
        wine - m Wein - Weins""",
    "reading": """
        book books n Buch Bücher Buches
        newspaper newspapers f Zeitung Zeitungen Zeitung
        letter letters m Brief Briefe Briefes
        story stories f Geschichte Geschichten Geschichte
        report reports m Bericht Berichte Berichts
        poem poems n Gedicht Gedichte Gedichts""",
    "things": """
        key keys m Schlüssel Schlüssel Schlüssels
        phone phones n Handy Handys Handys
        bag bags f Tasche Taschen Tasche
        knife knives n Messer Messer Messers
        pen pens m Stift Stifte Stifts
        photo photos n Foto Fotos Fotos
        gift gifts n Geschenk Geschenke Geschenks
        umbrella umbrellas m Regenschirm Regenschirme Regenschirms""",
    "upright": """
        bottle bottles f Flasche Flaschen Flasche
        cup cups f Tasse Tassen Tasse
        glass glasses n Glas Gläser Glases
        plate plates m Teller Teller Tellers
        lamp lamps f Lampe Lampen Lampe""",
    "furniture": """
        table tables m Tisch Tische Tisches
        chair chairs m Stuhl Stühle Stuhls
        bed beds n Bett Betten Bettes
        sofa sofas n Sofa Sofas Sofas
        cupboard cupboards m Schrank Schränke Schranks""",
    "openings": """
        door doors f Tür Türen Tür
        window windows n Fenster Fenster Fensters""",
    "clothes": """
        shirt shirts n Hemd Hemden Hemdes
        coat coats m Mantel Mäntel Mantels
        jacket jackets f Jacke Jacken Jacke
        dress dresses n Kleid Kleider Kleides
        hat hats m Hut Hüte Hutes
        sweater sweaters m Pullover Pullover Pullovers""",
    "vehicles": """
        car cars n Auto Autos Autos
        bus buses m Bus Busse Busses
        train trains m Zug Züge Zuges
        bicycle bicycles n Fahrrad Fahrräder Fahrrads
        ship ships n Schiff Schiffe Schiffes""",
    "machines": """
        computer computers m Computer Computer Computers
        camera cameras f Kamera Kameras Kamera
        radio radios n Radio Radios Radios
        clock clocks f Uhr Uhren Uhr""",
    "buildings": """
        house houses n Haus Häuser Hauses
        apartment apartments f Wohnung Wohnungen Wohnung
        bridge bridges f Brücke Brücken Brücke
        church churches f Kirche Kirchen Kirche""",
    "events": """
        movie movies m Film Filme Films
        concert concerts n Konzert Konzerte Konzerts
        party parties f Party Partys Party
        course courses m Kurs Kurse Kurses
        exam exams f Prüfung Prüfungen Prüfung""",
    "thoughts": """
        question questions f Frage Fragen Frage
        problem problems n Problem Probleme Problems
        answer answers f Antwort Antworten Antwort""",
    "leisure": """
        time - f Zeit - Zeit
        money - n Geld - Geldes""",
}

#   a noun as above, then English "at", German "at" (dative), German "to" (in, an: accusative; zu: dative)
PLACES = {
    "rooms": """
        kitchen kitchens f Küche Küchen Küche in in in
        bathroom bathrooms n Badezimmer Badezimmer Badezimmers in in in
        living_room living_rooms n Wohnzimmer Wohnzimmer Wohnzimmers in in in
        bedroom bedrooms n Schlafzimmer Schlafzimmer Schlafzimmers in in in
        garden gardens m Garten Gärten Gartens in in in
        office offices n Büro Büros Büros in in in""",
    "sites": """
        park parks m Park Parks Parks in in in
        school schools f Schule Schulen Schule in in in
        city cities f Stadt Städte Stadt in in in
        library libraries f Bibliothek Bibliotheken Bibliothek in in in
        restaurant restaurants n Restaurant Restaurants Restaurants in in in
        hotel hotels n Hotel Hotels Hotels in in in
        supermarket supermarkets m Supermarkt Supermärkte Supermarkts in in in
        museum museums n Museum Museen Museums in in in
        hospital hospitals n Krankenhaus Krankenhäuser Krankenhauses in in in
        village villages n Dorf Dörfer Dorfes in in in
        beach beaches m Strand Strände Strandes on an an
        lake lakes m See Seen Sees at an an
        station stations m Bahnhof Bahnhöfe Bahnhofs at an zu""",
}

#   English first part, German first part with its linking element, then the English heads
COMPOUNDS = """
    kitchen Küchen table chair window lamp clock
    garden Garten table chair door house
    office Büro chair door window computer
    car Auto door window key
    bedroom Schlafzimmer window door lamp
    school Schul bus book
    city Stadt park library
    apple Apfel cake juice
    tomato Tomaten soup salad
    orange Orangen juice cake
    vegetable Gemüse soup pizza
    birthday Geburtstags cake gift party
    winter Winter coat jacket sweater"""

ADJECTIVES = """
    big bigger groß - größer
    small smaller klein - kleiner
    old older alt - älter
    new newer neu - neuer
    young younger jung - jünger
    good better gut - besser
    beautiful more_beautiful schön - schöner
    expensive more_expensive teuer teur teurer
    cheap cheaper billig - billiger
    heavy heavier schwer - schwerer
    modern more_modern modern - moderner
    fresh fresher frisch - frischer
    cold colder kalt - kälter
    warm warmer warm - wärmer
    long longer lang - länger
    short shorter kurz - kürzer
    interesting more_interesting interessant - interessanter
    boring more_boring langweilig - langweiliger
    important more_important wichtig - wichtiger
    difficult more_difficult schwierig - schwieriger
    friendly friendlier freundlich - freundlicher
    happy happier glücklich - glücklicher
    funny funnier lustig - lustiger
    famous more_famous berühmt - berühmter
    strong stronger stark - stärker
    quiet quieter ruhig - ruhiger
    fast faster schnell - schneller
    tired - müde müd -
    sick - krank - -
    hungry - hungrig - -
    sad - traurig - -
    red - rot - -
    blue - blau - -
    green - grün - -
    black - schwarz - -
    white - weiß - -"""

FITTING = {
    "people": "young old friendly happy funny famous strong tired",
    "family": "young old friendly happy funny famous strong tired",
    "animals": "big small old young beautiful quiet black white",
    "food": "fresh cold warm good cheap expensive",
    "drinks": "fresh cold warm good cheap expensive",
    "reading": "new old interesting boring long short",
    "things": "new old small heavy cheap expensive black red",
    "upright": "new old big small beautiful blue green white",
    "furniture": "new old big small heavy modern",
    "openings": "new old big small green white",
    "clothes": "new old long short beautiful warm red blue",
    "vehicles": "new old fast expensive modern green black",
    "machines": "new old small cheap modern black",
    "buildings": "old big small beautiful modern white",
    "events": "long short interesting boring good important",
    "thoughts": "new important difficult interesting",
    "rooms": "big small beautiful quiet modern",
    "sites": "big small old beautiful quiet modern",
}

#   English base, past, -ing; German infinitive, er-form, participle, auxiliary (h haben, s sein);
#   aspect and frame, see `lexicon.Verb`
VERBS = """
    buy bought buying kaufen kauft gekauft h a acc goods
    sell sold selling verkaufen verkauft verkauft h a acc goods
    eat ate eating essen isst gegessen h a acc food
    drink drank drinking trinken trinkt getrunken h a acc drinks
    order ordered ordering bestellen bestellt bestellt h a acc meals
    cook cooked cooking kochen kocht gekocht h a acc dishes
    bake baked baking backen backt gebacken h a acc baked
    read read reading lesen liest gelesen h a acc reading
    write wrote writing schreiben schreibt geschrieben h a acc writing
    translate translated translating übersetzen übersetzt übersetzt h a acc writing
    look_for looked_for looking_for suchen sucht gesucht h a acc belongings
    find found finding finden findet gefunden h p acc belongings
    lose lost losing verlieren verliert verloren h p acc belongings
    forget forgot forgetting vergessen vergisst vergessen h p acc belongings
    take_along took_along taking_along mit|nehmen nimmt mitgenommen h a acc belongings
    bring_along brought_along bringing_along mit|bringen bringt mitgebracht h m acc belongings
    repair repaired repairing reparieren repariert repariert h a acc repairable
    use used using benutzen benutzt benutzt h a acc tools
    wash washed washing waschen wäscht gewaschen h a acc washable
    wear wore wearing tragen trägt getragen h a acc clothes
    put_on put_on putting_on an|ziehen zieht angezogen h a acc clothes
    open opened opening öffnen öffnet geöffnet h a acc openings
    close closed closing schließen schließt geschlossen h a acc openings
    turn_on turned_on turning_on an|machen macht angemacht h a acc switched
    turn_off turned_off turning_off aus|machen macht ausgemacht h a acc switched
    clean cleaned cleaning putzen putzt geputzt h a acc cleanable
    tidy_up tidied_up tidying_up auf|räumen räumt aufgeräumt h a acc rooms
    paint painted painting malen malt gemalt h a acc pictured
    see saw seeing sehen sieht gesehen h m acc anyone
    call called calling an|rufen ruft angerufen h a acc anyone
    invite invited inviting ein|laden lädt eingeladen h m acc anyone
    visit visited visiting besuchen besucht besucht h a acc anyone
    meet met meeting treffen trifft getroffen h m acc anyone
    pick_up picked_up picking_up ab|holen holt abgeholt h a acc people
    help helped helping helfen hilft geholfen h a dat anyone
    thank thanked thanking danken dankt gedankt h m dat anyone
    follow followed following folgen folgt gefolgt s a dat anyone
    give gave giving geben gibt gegeben h m give gifts
    show showed showing zeigen zeigt gezeigt h a give gifts
    send sent sending schicken schickt geschickt h m give gifts
    bring brought bringing bringen bringt gebracht h a give gifts
    tell told telling erzählen erzählt erzählt h a give tales
    wait waited waiting warten wartet gewartet h a prep for auf acc people
    talk talked talking sprechen spricht gesprochen h a prep to mit dat people
    think thought thinking denken denkt gedacht h m prep of an acc people
    dream dreamed dreaming träumen träumt geträumt h m prep of von dat people
    play played playing spielen spielt gespielt h a prep with mit dat people
    work worked working arbeiten arbeitet gearbeitet h a place
    sleep slept sleeping schlafen schläft geschlafen h a place
    dance danced dancing tanzen tanzt getanzt h a place
    sing sang singing singen singt gesungen h a place
    swim swam swimming schwimmen schwimmt geschwommen s a alone
    laugh laughed laughing lachen lacht gelacht h a alone
    watch_TV watched_TV watching_TV fern|sehen sieht ferngesehen h a alone
    go_shopping went_shopping going_shopping ein|kaufen kauft eingekauft h a alone
    get_up got_up getting_up auf|stehen steht aufgestanden s m alone
    fall_asleep fell_asleep falling_asleep ein|schlafen schläft eingeschlafen s m alone
    arrive arrived arriving an|kommen kommt angekommen s m alone
    go went going gehen geht gegangen s a to near
    run ran running laufen läuft gelaufen s a to near
    drive drove driving fahren fährt gefahren s a to far
    fly flew flying fliegen fliegt geflogen s a to cities
    travel traveled traveling reisen reist gereist s a to cities
    have had having haben hat gehabt h s acc owned
    need needed needing brauchen braucht gebraucht h s acc needed
    know knew knowing kennen kennt gekannt h s acc anyone
    love loved loving lieben liebt geliebt h s acc anyone
    understand understood understanding verstehen versteht verstanden h s acc thoughts
    live lived living wohnen wohnt gewohnt h s in cities"""

#   verbs that the templates name: they take a clause, a position, or only certain subjects
SPECIAL_VERBS = """
    be was being sein ist gewesen s s -
    know knew knowing wissen weiß gewusst h s -
    think thought thinking denken denkt gedacht h s -
    hope hoped hoping hoffen hofft gehofft h s -
    say said saying sagen sagt gesagt h s -
    believe believed believing glauben glaubt geglaubt h s -
    ask asked asking fragen fragt gefragt h s -
    try tried trying versuchen versucht versucht h a -
    plan planned planning planen plant geplant h a -
    promise promised promising versprechen verspricht versprochen h a -
    start started starting an|fangen fängt angefangen h a -
    end ended ending enden endet geendet h a -
    depart departed departing ab|fahren fährt abgefahren s a -
    cost cost costing kosten kostet gekostet h s -
    pay paid paying bezahlen bezahlt bezahlt h a -
    belong belonged belonging gehören gehört gehört h s -
    lie lay lying liegen liegt gelegen h s -
    stand stood standing stehen steht gestanden h s -
    sit sat sitting sitzen sitzt gesessen h s -
    put put putting legen legt gelegt h a -
    put put putting stellen stellt gestellt h a -
    rain rained raining regnen regnet geregnet h s -"""

#   what verbs take: kinds of nouns, or single nouns by their English names
TAKEN = {
    "goods": "clothes things reading vehicles machines furniture food",
    "meals": "pizza soup salad cake roll coffee tea juice wine water",
    "dishes": "soup rice meat egg tea",
    "baked": "cake bread pizza roll",
    "writing": "book letter story report poem",
    "belongings": "key phone bag pen photo gift umbrella book letter hat jacket",
    "repairable": "vehicles machines furniture lamp",
    "tools": "computer camera phone knife bicycle pen umbrella",
    "washable": "car shirt jacket dress cup glass plate dog",
    "switched": "lamp computer radio camera",
    "cleanable": "window kitchen bathroom apartment car bicycle",
    "pictured": "house bridge church horse bird cat ship table",
    "gifts": "book letter photo gift key bag newspaper cup apple",
    "tales": "story",
    "owned": "car house dog cat horse garden bicycle question problem camera time money",
    "needed": "key phone knife umbrella computer bed coat bread milk time money",
    "flat": "book newspaper letter key phone knife pen photo",
    "built": "house bridge church hotel school museum station hospital library",
}

GIVEN_NAMES = {
    "f": ("Anna", "Lena", "Maria", "Julia", "Sophie"),
    "m": ("Paul", "Peter", "Jan", "Martin", "David"),
}
SURNAMES = ("Weber", "Fischer", "Becker", "Wagner")

#   cities and countries, one name or English and German
TRAVEL = """
    Berlin
    Hamburg
    Paris
    London
    Munich München
    Vienna Wien
    Cologne Köln
    Zurich Zürich
    Italy Italien
    France Frankreich
    Spain Spanien"""
